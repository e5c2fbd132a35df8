"""The command `bsl`: parses, calls, prints. Each verb's work is in a room of its own."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from typing import TYPE_CHECKING, Final

from flows.cli.debug import add_debug
from flows.cli.printable import printable
from flows.cli.terminal.log_lines import start_lines
from flows.cli.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE_ERROR, FAILURE, INTERRUPTED, CUT_OFF = 2, 1, 130, 141
FIRST_STEPS: Final = """\
Raw sentences in, an evaluated sentence encoder out. First steps:

  bsl run tiny          a true run on this machine, without the Hub or a GPU; minutes
  bsl recipes           what else can be run: the papers' systems, each with its row, needs and hours
  bsl doctor RECIPE     whether this machine has what a recipe needs

All verbs: bsl --help"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 1 for a run that failed, 2 for a call that makes no sense.

    Ctrl-C gives 130 and a reader that leaves early, such as `head`, 141, as the shell has it.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(FIRST_STEPS)
        return 0
    if misspelt := _misspelt(words):
        print(misspelt, file=sys.stderr)
        return USAGE_ERROR
    arguments, unknown = parser_of(words).parse_known_args(words)
    if unknown:
        strange = printable(" ".join(unknown))
        print(
            f"bsl: {arguments.verb} takes no {strange}; `bsl {arguments.verb} --help` lists what it takes",
            file=sys.stderr,
        )
        return USAGE_ERROR
    start_lines()
    call: Callable[[argparse.Namespace], int] = arguments.call
    # Imported for a verb's work alone, like all that needs more than the standard library: help comes at once.
    from models.errors import ModelError
    from storage.errors import StorageError

    try:
        return call(arguments)
    except KeyboardInterrupt:
        print("bsl: interrupted; what was finished is kept, run again to go on", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has what they wanted; nothing may be flushed to them at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CUT_OFF
    except (StorageError, ModelError, OSError, ImportError, ValueError) as error:
        if arguments.debug:
            raise
        print(f"bsl: {printable(_told(error))}", file=sys.stderr)
        # A ValueError that is none of ours: an unknown recipe, field or value, said before anything was started. An
        # ImportError is an optional package that is missing, such as s3fs.
        ours = isinstance(error, StorageError | ModelError)
        return USAGE_ERROR if isinstance(error, ValueError) and not ours else FAILURE
    except Exception as error:
        from flows.cli.terminal.start import failed, is_of_a_server

        if arguments.debug or not is_of_a_server(error):
            raise
        return failed(error)


def _told(error: Exception) -> str:
    """An error in words; of a value that a configuration refuses, which field it is."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())


def _misspelt(words: Sequence[str]) -> str:
    """What is said of a call that does not begin with a verb; empty of one that does, or asks for help or version."""
    names, word = [verb.name for verb in VERBS], words[0]
    if word in (*names, "-h", "--help", "--version"):
        return ""
    if word.startswith("-"):
        verb = next((each for each in words if each in names), "")
        listing = f"bsl {verb} --help" if verb else "bsl --help"
        return f"bsl: options stand behind the verb: bsl {verb or 'VERB'} … {word}; `{listing}` lists them"
    nearest = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ";"
    return f"bsl: no verb is called {word!r}{hint} `bsl --help` lists them"


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a call: the names of all verbs, and the options of those that the call names."""
    parser = argparse.ArgumentParser(prog="bsl", description="Raw sentences in, an evaluated sentence encoder out.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and leave")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        # `resolve`: a verb may have a --help of its own.
        own = verbs.add_parser(verb.name, help=verb.help, description=verb.help, conflict_handler="resolve")
        if verb.name in words:
            verb.define(own)
        add_debug(own)
    return parser


class _Version(argparse.Action):
    """The installed version, looked up for it alone."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"bsl-pipeline {version('bsl-pipeline')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
