"""`bsl run`, `bsl recipes`, `bsl ui`."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.options import add_site_options, print_table
from flows.cli.settings import changes_of, configured
from flows.server import start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse
    from argparse import _SubParsersAction

    from storage.refs import ReportRef
    from storage.store import Store

    Verbs = _SubParsersAction[argparse.ArgumentParser]


def add_run(verbs: Verbs) -> None:
    """`bsl run RECIPE [--set field=value …]`."""
    parser = verbs.add_parser("run", help="run a recipe from raw sentences to its report")
    parser.add_argument("recipe", help="see `bsl recipes`")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="such as training.lr=3e-4; repeat for more"
    )
    add_site_options(parser)
    parser.add_argument("--processes", type=int, help="processes that train one model, one a GPU (BSL_PROCESSES; 1)")
    parser.set_defaults(call=_run)


def add_recipes(verbs: Verbs) -> None:
    """`bsl recipes [RECIPE]`."""
    parser = verbs.add_parser("recipes", help="list the recipes, or print one's complete configuration")
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(call=_recipes)


def add_ui(verbs: Verbs) -> None:
    """`bsl ui [--port N]`."""
    parser = verbs.add_parser("ui", help="serve the Prefect UI over the runs of this folder")
    parser.add_argument("--port", type=int, default=4200)
    parser.set_defaults(call=_ui)


def _run(arguments: argparse.Namespace) -> int:
    server = use_server()
    embedded = start_server()
    site = site_of(vars(arguments))
    config = configured(arguments.recipe, arguments.set)
    from flows.pipeline import pipeline
    from tasks.ingest import locate_sources

    locate_sources(site, config.ingest)  # what is missing is said alone, before a run starts that it would end
    changes = changes_of(arguments.set)
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


def _conclude(store: Store, ref: ReportRef, title: str, server: str) -> None:
    from models.report.page import INTERVALS, score_rows

    print_table(f"{title}\n{INTERVALS}", score_rows(store.scan(ref, "scores").collect()))
    folder = store.fetch(ref)
    figures = store.manifest(ref).figures
    if verdict := figures.get("verdict"):
        print(f"{verdict}: {figures['reason']}. {figures['advice']}")
    print(f"report:  {folder / 'report.md'}")
    inputs = store.manifest(ref).provenance.inputs.values()
    if trained := [entry.key for entry in inputs if entry.kind == "checkpoint"]:
        print(f"encoder: {store.url}/checkpoint/{trained[-1]}/encoder   (loads with SentenceTransformer)")
    print(f"browse:  make ui   (or `bsl ui`; {server})")


def _recipes(arguments: argparse.Namespace) -> int:
    from flows.recipes import recipe
    from flows.recipes.listing import listings

    if arguments.recipe:
        print(recipe(arguments.recipe).model_dump_json(indent=1))
        return 0
    listed = listings()
    if arguments.json:
        print(json.dumps([asdict(listing) for listing in listed], indent=1))
    else:
        print("\n".join(line for listing in listed for line in listing.lines))
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
