"""The command `bsl`: entry point, text without a verb, error messages and exit codes."""

from __future__ import annotations

import atexit
import difflib
import gc
import os
import sys
from typing import TYPE_CHECKING, Final

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError

from flows.cli.terminal.log_lines import printable, start_lines
from flows.cli.verbs import VERBS, application

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from inspect import BoundArguments

USAGE_ERROR, FAILURE, INTERRUPTED, CUT_OFF = 2, 1, 130, 141
FIRST_STEPS: Final = """\
Raw sentences in, an evaluated sentence encoder out. First steps:

  bsl run tiny          a true run on this machine, without the Hub or a GPU; minutes
  bsl recipes           what else can be run: the papers' systems, each with its row, needs and hours
  bsl doctor RECIPE     whether this machine has what a recipe needs

All verbs: bsl --help"""

app = application()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: success. 1: a failed run, or a training stopped as harmful. 2: a usage error. As in the shell, 130: Ctrl-C, and
    141: the reader of a pipe, such as `head`, closed it.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    # Imports make a million objects and hardly any garbage: search less often, and not at the end of the process.
    gc.set_threshold(10_000)
    atexit.register(gc.freeze)
    if not words:
        print(FIRST_STEPS)
        return 0
    if misspelt := _misspelt(words):
        print(misspelt, file=sys.stderr)
        return USAGE_ERROR
    start_lines()
    try:
        return _called(words)
    except CycloptsError as error:
        print(f"bsl: {printable(refusal(error, words))}", file=sys.stderr)
        return USAGE_ERROR
    except SystemExit as ended:  # after a failed run, whose error is printed
        return int(ended.code or 0)
    except KeyboardInterrupt:
        print("bsl: interrupted; finished stages are cached; run again to resume", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The pipe is closed; Python must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF
    except Exception as error:
        if "--debug" in words or (code := _failed(error)) is None:
            raise
        return code


def _called(words: Sequence[str]) -> int:
    command, bound = parsed(words)
    code = command(*bound.args, **bound.kwargs) or 0
    if command == app.help_print and words[0] == "evaluate":
        from flows.cli.evaluate import suites_listed  # slow: imports all kinds of evaluation

        print(suites_listed())
    return code


def parsed(words: Sequence[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    """Return the function of a call and its arguments.

    Args:
        words: The verb and its arguments; `--debug` may also come between a verb and its action.

    Raises:
        CycloptsError: The call has an unknown option or a wrong value, or lacks an argument.
    """
    rest = [word for word in words if word != "--debug"]
    chain, _, _ = app.parse_commands(rest)
    debug = ["--debug"] if len(rest) < len(words) else []
    command, bound, _ = app.parse_args([*chain, *debug, *rest[len(chain) :]], verbose=False)
    if command == app.help_print and not {"-h", "--help"} & set(words):
        actions = [name for name in app[chain[0]].resolved_commands() if not name.startswith("-")]
        raise CycloptsError(msg=f"{chain[0]} takes an action: {', '.join(actions)}")
    return command, bound


def _failed(error: Exception) -> int | None:
    """Print a known error in one line and return the exit code; None for an unexpected error."""
    # Imported only for an error, to keep `--help` fast.
    from flows.cli.terminal.start import failed, is_of_a_server
    from models.errors import ModelError
    from storage.errors import StorageError

    if isinstance(error, StorageError | ModelError | OSError | ImportError | ValueError):
        print(f"bsl: {printable(_worded(error))}", file=sys.stderr)
        # A ValueError of no class of ours is an unknown recipe, field or value, found before a run started. An
        # ImportError is a missing optional package, such as s3fs.
        ours = isinstance(error, StorageError | ModelError)
        return USAGE_ERROR if isinstance(error, ValueError) and not ours else FAILURE
    return failed(error) if is_of_a_server(error) else None


def _worded(error: Exception) -> str:
    """Return an error's message; for a pydantic error, each field with its message."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())


def _misspelt(words: Sequence[str]) -> str:
    """Return the error of a call that does not begin with a verb; empty if it does, or requests help or version."""
    names, word = [verb.name for verbs in VERBS.values() for verb in verbs if " " not in verb.name], words[0]
    if word in (*names, "-h", "--help", "--version"):
        return ""
    if word.startswith("-"):
        verb = next((each for each in words if each in names), "")
        listing = f"bsl {verb} --help" if verb else "bsl --help"
        return f"bsl: options follow the verb: bsl {verb or 'VERB'} … {word}; `{listing}` lists them"
    nearest = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ";"
    return f"bsl: no verb is called {word!r}{hint} `bsl --help` lists them"


def refusal(error: CycloptsError, words: Sequence[str]) -> str:
    """Return the message for a wrong call of a verb, with the nearest option and the command that lists all.

    Args:
        error: The parser's error.
        words: The verb and its arguments.
    """
    verb = " ".join(error.command_chain or words[:1])
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for argument in error.argument_collection for name in argument.names if argument.parse]
        nearest = difflib.get_close_matches(option, known, n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ";"
        return f"{verb} takes no {option}{hint} `bsl {verb} --help` lists its options"
    if isinstance(error, UnusedCliTokensError):
        return f"{verb} takes no {' '.join(error.unused_tokens or ())}; `bsl {verb} --help` lists its arguments"
    return f"{str(error).rstrip('.')}; see `bsl {verb} --help`"


if __name__ == "__main__":
    sys.exit(main())
