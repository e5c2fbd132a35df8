"""The command `bsl`: what it says without a verb, its errors and its exit codes."""

from __future__ import annotations

import difflib
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
    """Run the command line; returns the exit code: 0, 1 for a run that failed, 2 for a call that makes no sense.

    A run whose training was stopped as harmful gives 1 too. Ctrl-C gives 130 and a reader that leaves early, such as
    `head`, 141, as the shell has it.
    """
    words = list(sys.argv[1:] if argv is None else argv)
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
    except KeyboardInterrupt:
        print("bsl: interrupted; finished stages are cached; run again to resume", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted; nothing may be flushed to it at the end.
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
        from flows.cli.evaluate import suites_listed  # which imports the kinds of evaluation

        print(suites_listed())
    return code


def parsed(words: Sequence[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    """Return the function of a call and its arguments.

    Args:
        words: the verb and what follows it; `--debug` may also stand between a verb and its action.

    Raises:
        CycloptsError: the call has an unknown option, a wrong value, or lacks an argument.
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
    """Print an error in a line; None for one that nobody foresaw."""
    # Imported for a failure alone: help comes at once.
    from flows.cli.terminal.start import failed, is_of_a_server
    from models.errors import ModelError
    from storage.errors import StorageError

    if isinstance(error, StorageError | ModelError | OSError | ImportError | ValueError):
        print(f"bsl: {printable(_worded(error))}", file=sys.stderr)
        # A ValueError that is none of ours: an unknown recipe, field or value, refused before anything was started. An
        # ImportError is an optional package that is missing, such as s3fs.
        ours = isinstance(error, StorageError | ModelError)
        return USAGE_ERROR if isinstance(error, ValueError) and not ours else FAILURE
    return failed(error) if is_of_a_server(error) else None


def _worded(error: Exception) -> str:
    """An error in words; for a value that a configuration refuses, with its field."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())


def _misspelt(words: Sequence[str]) -> str:
    """What is wrong with a call that does not begin with a verb; empty if it does, or asks for help or version."""
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
    """Return what is wrong with a call that begins with a verb, the nearest option, and where all are listed.

    Args:
        error: what the parser found.
        words: the verb and what follows it.
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
