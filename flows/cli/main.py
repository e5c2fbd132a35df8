"""The command `bsl`: its verbs, its exit codes, and the two verbs without a flow, `ui` and `completion`.

A verb's module is imported when the verb is called, none to list them: `bsl --help` comes at once.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.cli.terminal.log_lines import printable, start_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE_ERROR, FAILURE, INTERRUPTED, CUT_OFF = 2, 1, 130, 141
FIRST_STEPS: Final = """\
Raw sentences in, an evaluated sentence encoder out. First steps:

  bsl run tiny          a true run on this machine, without the Hub or a GPU; minutes
  bsl recipes           what else can be run: the papers' systems, each with its row, needs and hours
  bsl doctor RECIPE     whether this machine has what a recipe needs

All verbs: bsl --help"""


@dataclass(frozen=True)
class Verb:
    """A verb.

    Attributes:
        name: what a person types.
        room: the module of flows/cli that defines its options as `define_<name>(parser)`.
        help: one line.
    """

    name: str
    room: str
    help: str

    def define(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the verb's options, and `call`, which does its work."""
        getattr(import_module(f"flows.cli.{self.room}"), f"define_{self.name}")(parser)


VERBS: Final = (
    Verb("run", "run", "run a recipe from raw sentences to its report"),
    Verb("adapt", "adapt", "adapt an encoder to your text; it is handed out where it is proved better"),
    Verb("evaluate", "evaluate", "score any encoder on the papers' sets; compare several on the same pairs"),
    Verb("compare", "compare", "hold finished runs against each other, on the same pairs"),
    Verb("reproduce", "reproduce", "run the recipe behind a published row, and hold it against the row"),
    Verb("sweep", "sweep", "run a grid of configurations, each with several seeds, to one table"),
    Verb("field", "field", "try every method on your text, and say which to use"),
    Verb("embed", "search", "write the vectors of a file's sentences"),
    Verb("search", "search", "find the sentences of a corpus that are most like a query"),
    Verb("pairs", "search", "find the sentences of a corpus that are most like each other"),
    Verb("recipes", "recipes", "list the recipes, or print one's complete configuration"),
    Verb("artifacts", "artifacts", "list, show, verify, collect or export what runs have made"),
    Verb("export", "export", "write an encoder's small and fast forms: ONNX, int8, fewer dimensions, a static table"),
    Verb("assets", "assets", "list, verify or rebuild the models and texts in the package"),
    Verb("mirror", "hub", "fill a folder that stands in for the Hub, to be used as BSL_DATA_MIRROR"),
    Verb("pins", "hub", "list the Hub's commits that recipes read; compare them with the Hub"),
    Verb("bench", "diagnostics", "check and measure a GPU or a processor: parity, rates, share of its limits"),
    Verb("doctor", "diagnostics", "check devices, disk, store, server, models and data of a recipe"),
    Verb("completion", "main", "print what makes your shell complete verbs and options"),
    Verb("ui", "main", "serve the Prefect UI over the runs of this folder"),
)


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


def define_ui(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("--port", type=int, default=4200, help="where on this machine (4200)")
    parser.set_defaults(call=_ui)


def _ui(arguments: argparse.Namespace) -> int:
    from flows.prefect_server.server import is_alone, named_server, use_server

    server = use_server()
    if address := named_server():
        print(f"{server} serves its own UI: {address.removesuffix('/api')}")
        return 0
    is_alone(inherited=True)  # so that no other command takes its runs for dead
    url = f"http://127.0.0.1:{arguments.port}"
    os.environ["PREFECT_SERVER_UI_API_URL"] = f"{url}/api"  # else the page asks the default port
    print(f"{server}\nruns and artifacts: {url}   (stop with Ctrl-C)", flush=True)
    prefect = str(Path(sys.executable).with_name("prefect"))
    os.execv(prefect, [prefect, "server", "start", "--host", "127.0.0.1", "--port", str(arguments.port)])


def define_completion(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "shell", choices=("bash", "zsh", "tcsh"), help='bash: eval "$(bsl completion bash)", in ~/.bashrc for good'
    )
    parser.set_defaults(call=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(parser_of([verb.name for verb in VERBS]), arguments.shell))
    return 0


def add_debug(parser: argparse.ArgumentParser, *, default: bool | str = False) -> None:
    """`--debug`; below a verb's parser the default is `argparse.SUPPRESS`, or it would undo what stands before it."""
    parser.add_argument(
        "--debug", action="store_true", help="show where an error comes from, and Prefect's log", default=default
    )


if __name__ == "__main__":
    sys.exit(main())
