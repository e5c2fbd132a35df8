"""The commands of `bsl`, in the order and groups of its help.

The function of a command is imported when the command is called, to keep `bsl --help` fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cyclopts import App, Group, Parameter


@dataclass(frozen=True)
class Command:
    """A command, or an action of a command.

    Attributes:
        name: The word on the command line; for an action, the command and the action.
        function: `<module of flows/cli>:<function>`, or empty if the command has actions.
        help: The line in the help.
        example: A call, below the help of the command.
    """

    name: str
    function: str
    help: str
    example: str = ""


COMMANDS: Final[dict[str, tuple[Command, ...]]] = {
    "Run": (
        Command("run", "run:run", "Run a recipe from raw sentences to its report."),
        Command(
            "sweep", "sweep:sweep", "Run a grid of configurations with several seeds, and compare them in one table."
        ),
        Command(
            "reproduce", "sweep:reproduce", "Run the recipe of a published row, and compare its figures with the row."
        ),
        Command(
            "recipes", "recipes:recipes", "List the recipes by family, or print the complete configuration of one."
        ),
    ),
    "Own text": (
        Command(
            "adapt",
            "adapt:adapt",
            "Adapt an encoder to your text; you get the new one only if it is better.",
            "bsl adapt reviews.csv --labels labelled.csv --label-column stars",
        ),
    ),
    "Evaluate": (
        Command(
            "evaluate",
            "evaluate:evaluate",
            "Score encoders on the papers' sets or your labels; compare several.",
            "bsl evaluate embedded:mini-sentence report/latest --suite sts labels:labelled.csv",
        ),
        Command("compare", "compare:compare", "Compare finished runs on the same pairs."),
    ),
    "Use an encoder": (
        Command("embed", "search:embed", "Write the vectors of a file's sentences."),
        Command("search", "search:search", "Find the sentences of a corpus that are most similar to a query."),
        Command(
            "classify", "classify:classify", "Classify the texts of a file, after bsl adapt with labels of classes."
        ),
        Command("pairs", "search:pairs", "Find the most similar pairs of sentences in a corpus."),
        Command("export", "export:export", "Write small and fast forms: ONNX, int8, fewer dimensions, a static table."),
    ),
    "Artifacts": (
        Command("artifacts", "", "List, show, verify, delete or export the artifacts of runs."),
        Command("artifacts ls", "artifacts:ls", "List artifacts, newest first."),
        Command(
            "artifacts show",
            "artifacts:show",
            "Print the tables of a result, the manifest of an artifact and its first rows.",
        ),
        Command("artifacts verify", "artifacts:verify", "Hash every file; exit code 1 if an artifact is damaged."),
        Command(
            "artifacts gc", "artifacts:gc", "List or delete old artifacts that no newer report or evaluation needs."
        ),
        Command("artifacts delete", "artifacts:delete", "Delete the named artifacts, such as damaged ones."),
        Command("artifacts export", "artifacts:export", "Copy one artifact to a new folder or .zip."),
    ),
    "Set up": (
        Command("doctor", "diagnostics:doctor", "Check devices, disk, store, server, models and data of a recipe."),
        Command("assets", "", "List the models and texts in the package."),
        Command("assets ls", "assets:ls", "List them, with licences, sizes and checksums; check every file."),
        Command("mirror", "hub:mirror", "Fill a Hub cache with the files that recipes read, for use as HF_HOME."),
        Command("pins", "hub:pins", "List the Hub commits that recipes read."),
        Command("ui", "diagnostics:ui", "Serve the Prefect UI with the runs of this folder."),
        Command(
            "completion",
            "diagnostics:completion",
            "Print the script that completes commands and options in your shell.",
        ),
    ),
}
"""Title of a group → its commands; the actions of a command follow it."""


def application() -> App:
    """Return the parser of the command line; `bsl.flows.cli.main` prints its errors."""
    app = App(
        name="bsl",
        help="Raw sentences in, an evaluated sentence encoder out.",
        version=_version,
        help_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=_shown),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    app["--help"].group = app["--version"].group = Group("Options", sort_key=100)
    for title, commands in COMMANDS.items():
        group = Group.create_ordered(title)
        for position, command in enumerate(commands):
            parent, _, name = command.name.rpartition(" ")
            if command.function:
                (app[parent] if parent else app).command(
                    f"bsl.flows.cli.{command.function}",
                    name=name,
                    help=command.help,
                    help_epilogue=f"Example: {command.example}" if command.example else None,
                    group=None if parent else group,
                    sort_key=position,
                )
            else:
                app.command(App(name=name, help=command.help, group=group, sort_key=position))
    return app


def _shown(default: object) -> str | None:
    """Return the default to show in the help; None for an unset option, whose help states the default."""
    return None if default in (None, False, "") or isinstance(default, tuple) else str(default)


def _version() -> str:
    """Return the installed version; imported only for `--version`."""
    from importlib.metadata import version

    return f"bsl-pipeline {version('bsl-pipeline')}"
