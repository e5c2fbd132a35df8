"""The command line `bsl`: entry point, text without a command, error messages and exit codes."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from typing import TYPE_CHECKING, Final

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError

from bsl.flows.cli.commands import application
from bsl.flows.cli.terminal.log_lines import printable, start_lines
from bsl.storage.filesystem.caches import have_home
from bsl.storage.filesystem.os_errors import check_umask
from bsl.storage.filesystem.secrets import without_password
from bsl.tasks.stage.device import let_threads_sleep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from inspect import BoundArguments

_TEXTS: Final = "query"  # the parameter that takes texts; all other words may be addresses
USAGE_ERROR, FAILURE, INTERRUPTED, CUT_OFF = 2, 1, 130, 141
FIRST_STEPS: Final = """\
Raw sentences in, an evaluated sentence encoder out. First steps:

  bsl run tiny          a complete run on this machine, without the Hub or a GPU; minutes
  bsl recipes           all recipes, by family; --all: with published rows, requirements and GPU hours
  bsl doctor RECIPE     check whether this machine has everything that a recipe needs

All commands: bsl --help"""

app = application()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: success. 1: a failed run, also one of a sweep, or a training stopped as harmful. 2: a usage error. As in the
    shell, 130: Ctrl-C, and 141: the reader of a pipe, such as `head`, closed the pipe.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal's encoding may lack a character
    # Imports make a million objects and little garbage: collect less often, and not at the end of the process.
    gc.set_threshold(10_000)
    let_threads_sleep()
    atexit.register(gc.freeze)
    if not words:
        print(FIRST_STEPS)
        return 0
    start_lines()
    try:
        check_umask()
        have_home()
        return _called(words)
    except CycloptsError as error:
        print(f"bsl: {printable(refusal(error))}", file=sys.stderr)
        return USAGE_ERROR
    except SystemExit as ended:  # after a failed run, whose error is printed
        return int(ended.code or 0)
    except KeyboardInterrupt as interrupted:  # a run's says how it is resumed
        print(printable(". ".join(("bsl: interrupted", *map(str, interrupted.args)))), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The pipe is closed; Python must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF
    except Exception as error:
        if "--debug" in words or (code := _failed(error)) is None:
            raise
        return code


def _open_streams() -> None:
    """Open closed standard streams on the null device; else other files get their numbers, which children replace."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _check_addresses(words: Sequence[str], texts: Collection[str] = ()) -> None:
    """Refuse passwords in addresses before any of them is used, recorded or part of an error.

    Args:
        words: The command and its arguments.
        texts: Those that are texts: a URL in them is no address, and they are not recorded.

    Raises:
        ValueError: A word contains one; the message names its option.
    """
    for previous, word in zip(("", *words), words, strict=False):
        try:
            if word not in texts:
                without_password(word)
        except ValueError as error:
            option = word.partition("=")[0] if word.startswith("--") else previous if previous.startswith("--") else ""
            raise ValueError(f"{option}: {error}" if option else str(error)) from None


def _called(words: Sequence[str]) -> int:
    try:
        function, bound = parsed(words)
    except CycloptsError:
        _check_addresses(words)  # its message would repeat them
        raise
    _check_addresses(words, bound.arguments.get(_TEXTS, ()))
    return function(*bound.args, **bound.kwargs) or 0


def parsed(words: Sequence[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    """Return the function of a command and its arguments.

    Args:
        words: The command and its arguments; `--debug` may come anywhere.

    Raises:
        CycloptsError: An option is unknown, a value is invalid, or an argument is missing.
    """
    rest = [word for word in words if word != "--debug"]
    chain, _, _ = app.parse_commands(rest)
    debug = ["--debug"] if len(rest) < len(words) else []
    function, bound, _ = app.parse_args([*chain, *debug, *rest[len(chain) :]], verbose=False)
    if function == app.help_print and not {"-h", "--help"} & set(words):
        actions = [name for name in app[chain[0]].resolved_commands() if not name.startswith("-")]
        raise CycloptsError(msg=f"expected an action: {', '.join(actions)}", command_chain=tuple(chain))
    return function, bound


def _failed(error: Exception) -> int | None:
    """Print a known error in one line and return the exit code; None for an unexpected error."""
    # Imported only for an error, to keep `--help` fast.
    from bsl.flows.cli.terminal.start import failed, is_server_error
    from bsl.models.errors import ModelError
    from bsl.storage.errors import StorageError

    if isinstance(error, StorageError | ModelError | OSError | ImportError | ValueError):
        print(f"bsl: {printable(_message(error))}", file=sys.stderr)
        # Another ValueError is an unknown recipe, field or value, found before a run started. An ImportError is a
        # missing optional package, such as s3fs.
        is_own = isinstance(error, StorageError | ModelError)
        return USAGE_ERROR if isinstance(error, ValueError) and not is_own else FAILURE
    return failed(error) if is_server_error(error) else None


def _message(error: Exception) -> str:
    """Return an error's message; for a pydantic error, each field with its message."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    found = [(".".join(map(str, problem["loc"])), problem["msg"]) for problem in error.errors()]
    return "; ".join(f"{field}: {reason.removeprefix('Value error, ')}" for field, reason in found)


def refusal(error: CycloptsError) -> str:
    """Return the message for a wrong call, with the command that prints the help."""
    command = " ".join(error.command_chain or ())
    message = str(error)
    if isinstance(error, UnusedCliTokensError):
        message = f"unexpected argument {' '.join(error.unused_tokens or ())!r}"
    elif isinstance(error, UnknownOptionError):
        message = _unknown_option(error)
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See `{f'bsl {command}'.rstrip()} --help`"


def _unknown_option(error: UnknownOptionError) -> str:
    """Return the message with the nearest option; cyclopts' own also suggests those that share little but dashes."""
    from bsl.storage.filesystem.spelling import nearest_name

    word = error.token.keyword or error.token.value
    if os.path.exists(word):  # noqa: PTH110 - as the user wrote it
        return f"Unknown option: {word}. For the file of this name, write ./{word}"
    known = {name.lstrip("-"): name for option in error.argument_collection if option.parse for name in option.names}
    near = nearest_name(word.lstrip("-").partition("=")[0], known)
    return f"Unknown option: {word}.{f' Did you mean {known[near]}?' if near else ''}"


if __name__ == "__main__":
    sys.exit(main())
