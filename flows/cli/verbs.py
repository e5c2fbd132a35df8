"""The verbs of `bsl`, in the order and groups of its help.

A verb's function is imported when the verb is called, to keep `bsl --help` fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cyclopts import App, Group, Parameter


@dataclass(frozen=True)
class Verb:
    """A verb, or an action of a verb.

    Attributes:
        name: The word on the command line; for an action the verb and the action.
        function: `<module of flows/cli>:<function>`, or empty if the verb has actions.
        help: Its line in the help.
    """

    name: str
    function: str
    help: str


VERBS: Final[dict[str, tuple[Verb, ...]]] = {
    "Run": (
        Verb("run", "run:run", "Run a recipe from raw sentences to its report."),
        Verb("sweep", "sweep:sweep", "Run a grid of configurations, each with several seeds, to one table."),
        Verb("reproduce", "sweep:reproduce", "Run the recipe behind a published row, and compare it with the row."),
        Verb("recipes", "recipes:recipes", "List the recipes, or print the complete configuration of one."),
    ),
    "Own text": (
        Verb("adapt", "adapt:adapt", "Adapt an encoder to your text; you get the new one only if it is better."),
        Verb("field", "field:field", "Try every method on your text, and say which to use."),
    ),
    "Evaluate": (
        Verb("evaluate", "evaluate:evaluate", "Score encoders on the papers' sets; compare several."),
        Verb("compare", "compare:compare", "Compare finished runs on the same pairs."),
    ),
    "Use an encoder": (
        Verb("embed", "search:embed", "Write the vectors of a file's sentences."),
        Verb("search", "search:search", "Find the sentences of a corpus that are most like a query."),
        Verb("pairs", "search:pairs", "Find the sentences of a corpus that are most like each other."),
        Verb("export", "export:export", "Write small and fast forms: ONNX, int8, fewer dimensions, a static table."),
    ),
    "Artifacts": (
        Verb("artifacts", "", "List, show, verify, collect or export what runs have made."),
        Verb("artifacts ls", "artifacts:ls", "List artifacts, newest first."),
        Verb("artifacts show", "artifacts:show", "Print the manifest of an artifact and its first rows."),
        Verb("artifacts verify", "artifacts:verify", "Hash every file; exit code 1 if an artifact is damaged."),
        Verb("artifacts gc", "artifacts:gc", "List, or delete, what is old and no younger report or evaluation needs."),
        Verb("artifacts export", "artifacts:export", "Copy one artifact to a new folder or .zip."),
    ),
    "Set up": (
        Verb("doctor", "diagnostics:doctor", "Check devices, disk, store, server, models and data of a recipe."),
        Verb("bench", "diagnostics:bench", "Check and measure a GPU or a processor: parity, rates, limits."),
        Verb("assets", "", "List, verify or rebuild the models and texts in the package."),
        Verb("assets ls", "assets:ls", "List them, with licences and sizes."),
        Verb("assets verify", "assets:verify", "Recompute their checksums and figures; minutes."),
        Verb("assets build", "assets:build", "Train all models from a mirror of licensed collections."),
        Verb("mirror", "hub:mirror", "Fill a cache of the Hub with what recipes read, to be used as HF_HOME."),
        Verb("pins", "hub:pins", "List the Hub's commits that recipes read; compare them with the Hub."),
        Verb("ui", "diagnostics:ui", "Serve the Prefect UI over the runs of this folder."),
        Verb(
            "completion", "diagnostics:completion", "Print the script that makes your shell complete verbs and options."
        ),
    ),
}
"""Title of a group → its verbs; the actions of a verb follow it."""


def application() -> App:
    """Return the parser of the command line; its verbs are imported when they are called."""
    app = App(  # `flows.cli.main` prints its errors
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
    for title, verbs in VERBS.items():
        group = Group.create_ordered(title)
        for place, verb in enumerate(verbs):
            parent, _, name = verb.name.rpartition(" ")
            if verb.function:
                (app[parent] if parent else app).command(
                    f"flows.cli.{verb.function}",
                    name=name,
                    help=verb.help,
                    group=None if parent else group,
                    sort_key=place,
                )
            else:
                app.command(App(name=name, help=verb.help, group=group, sort_key=place))
    return app


def _shown(default: object) -> str | None:
    """Return the default to show in the help; None for an unset option, whose help text states its default."""
    return None if default in (None, False, "") or isinstance(default, tuple) else str(default)


def _version() -> str:
    """Return the installed version; called only for `--version`."""
    from importlib.metadata import version

    return f"bsl-pipeline {version('bsl-pipeline')}"
