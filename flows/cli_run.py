"""`bsl run`, `bsl recipes`, `bsl ui`."""

import argparse
import difflib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.table import Table

from flows.embedded_server import start_server
from flows.server import use_server
from flows.site import site_from_environment

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from flows.config import PipelineConfig
    from storage.refs import ReportRef
    from storage.store import Store

    Verbs = _SubParsersAction[argparse.ArgumentParser]


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Where a run happens; the environment decides what is not given."""
    parser.add_argument("--store", help="URL of the artifact store (BSL_STORE; .bsl/store)")
    parser.add_argument("--mirror", help="folder of data sets that stands in for the Hub (BSL_DATA_MIRROR)")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (BSL_DEVICE; a GPU if there is one)")


def add_run(verbs: "Verbs") -> None:
    """`bsl run RECIPE [--set field=value …]`."""
    parser = verbs.add_parser("run", help="run a recipe from raw sentences to its report")
    parser.add_argument("recipe", help="see `bsl recipes`")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="such as training.lr=3e-4; repeat for more"
    )
    add_site_options(parser)
    parser.add_argument("--processes", type=int, help="processes that train one model, one a GPU (BSL_PROCESSES; 1)")
    parser.set_defaults(call=_run)


def add_recipes(verbs: "Verbs") -> None:
    """`bsl recipes [RECIPE]`."""
    parser = verbs.add_parser("recipes", help="list the recipes, or print one's complete configuration")
    parser.add_argument("recipe", nargs="?")
    parser.set_defaults(call=_recipes)


def add_ui(verbs: "Verbs") -> None:
    """`bsl ui [--port N]`."""
    parser = verbs.add_parser("ui", help="serve the Prefect UI over the runs of this folder")
    parser.add_argument("--port", type=int, default=4200)
    parser.set_defaults(call=_ui)


def print_table(title: str, rows: list[dict[str, str]]) -> None:
    """A table of equal-keyed rows, wide enough for its figures where the terminal's width is not known."""
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*row.values())
    Console(width=max(120, Console().width)).print(table)


def configured(name: str, settings: list[str]) -> "PipelineConfig":
    """A recipe with `field=value` settings.

    Raises:
        ValueError: the recipe, a field or a value is not known; the nearest name is offered.
    """
    from flows.config import override
    from flows.recipes import recipe

    base = recipe(name)
    try:
        return override(base, _changes(settings))
    except ValidationError as error:
        raise ValueError("\n".join(_explain(problem, base) for problem in error.errors())) from error


def _run(arguments: argparse.Namespace) -> int:
    server = use_server()
    embedded = start_server()
    site = site_from_environment(
        store=arguments.store, mirror=arguments.mirror, device=arguments.device, processes=arguments.processes
    )
    config = configured(arguments.recipe, arguments.set)
    from flows.pipeline import pipeline
    from tasks.ingest import locate_sources

    locate_sources(site, config.ingest)  # what is missing is said alone, before a run starts that it would end
    changes = _changes(arguments.set)
    if embedded is not None:
        embedded.wait()
    state = pipeline(arguments.recipe, changes or None, site, return_state=True)
    if not state.is_completed():
        print(
            f"bsl: the run did not finish: {state.message}\nWhat was finished is kept; run again to go on.",
            file=sys.stderr,
        )
        return 1
    ref: ReportRef = state.result()
    _conclude(site.open_store(), ref, config.title, server)
    return 0


def _conclude(store: "Store", ref: "ReportRef", title: str, server: str) -> None:
    from models.report.page import INTERVALS, score_rows

    print_table(f"{title}\n{INTERVALS}", score_rows(store.scan(ref, "scores").collect()))
    folder = store.fetch(ref)
    encoder = next(entry for entry in store.manifest(ref).provenance.inputs.values() if entry.kind == "checkpoint")
    print(f"report:  {folder / 'report.md'}")
    print(f"encoder: {store.url}/checkpoint/{encoder.key}/encoder   (loads with SentenceTransformer)")
    print(f"browse:  make ui   (or `bsl ui`; {server})")


def _recipes(arguments: argparse.Namespace) -> int:
    from flows.recipes import RECIPES, recipe

    if arguments.recipe:
        print(recipe(arguments.recipe).model_dump_json(indent=1))
        return 0
    for name, make in RECIPES.items():
        print(f"{name:<16} {(make.__doc__ or '').strip().splitlines()[0]}")
    return 0


def _ui(arguments: argparse.Namespace) -> int:
    server = use_server()
    if address := os.environ.get("PREFECT_API_URL"):
        print(f"{server} serves its own UI: {address.removesuffix('/api')}")
        return 0
    url = f"http://127.0.0.1:{arguments.port}"
    os.environ["PREFECT_SERVER_UI_API_URL"] = f"{url}/api"  # else the page asks the default port
    print(f"{server}\nruns and artifacts: {url}   (stop with Ctrl-C)", flush=True)
    prefect = str(Path(sys.executable).with_name("prefect"))
    os.execv(prefect, [prefect, "server", "start", "--host", "127.0.0.1", "--port", str(arguments.port)])


def _changes(settings: list[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: expected FIELD=VALUE, such as training.lr=3e-4")
        if not _put(changes, path.split("."), _value(value)):
            other = next(other for other in settings if other != setting and _nested(path, other.partition("=")[0]))
            raise ValueError(f"--set {setting} and --set {other} contradict each other; leave one of them out")
    return changes


def _put(changes: dict[str, Any], path: list[str], value: object) -> bool:
    """Whether the value has its place: none is above or below a plain value that was set before."""
    *parents, last = path
    for name in parents:
        changes = changes.setdefault(name, {})
        if not isinstance(changes, dict):
            return False
    if last == "objective" and isinstance(value, str):
        value = {"name": value}  # its name alone chooses an objective, whose fields may be set too
    before = changes.get(last)
    if isinstance(before, dict) and not isinstance(value, dict):
        return False
    changes[last] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
    return True


def _nested(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _value(text: str) -> object:
    """A JSON value (`3e-4`, `true`, `["a"]`), or the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _explain(problem: Any, base: BaseModel) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    from models.objectives.config import OBJECTIVE_CONFIGS

    # pydantic's location has the name of the chosen objective between the section and its field.
    place = ".".join(str(part) for part in problem["loc"] if part not in OBJECTIVE_CONFIGS)
    if problem["type"] != "extra_forbidden":
        return f"{place}: {problem['msg']} (found {problem['input']!r})"
    model: object = base
    for part in problem["loc"][:-1]:
        model = OBJECTIVE_CONFIGS[part]() if part in OBJECTIVE_CONFIGS else getattr(model, str(part), model)
    fields = list(type(model).model_fields) if isinstance(model, BaseModel) else []
    nearest = difflib.get_close_matches(str(problem["loc"][-1]), fields, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"{place}: no such field{hint} Fields here: {', '.join(fields)}"
