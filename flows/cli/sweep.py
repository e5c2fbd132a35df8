"""`bsl sweep RECIPE --over FIELD=VALUE,VALUE --seeds N`: a grid of runs in one table and one plot."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from flows.cli.options import add_site_options, print_table
from flows.cli.settings import changes_of, value_of
from flows.server import start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse

    from storage.refs import StudyRef
    from storage.store import Store


def define_sweep(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("name", help="a recipe, or a declared study: momentum, batch, corpus, augmentation, …")
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="FIELD=VALUES",
        help="such as training.objective.momentum=0.5,0.999 or recipe=nli,entail; repeat for a grid",
    )
    parser.add_argument("--seeds", type=int, default=1, help="runs of each point, with training.seed 0, 1, … (1)")
    parser.add_argument("--lanes", type=int, default=1, help="runs at a time (1)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="a change to every point; repeat for more"
    )
    add_site_options(parser)
    parser.set_defaults(call=_sweep)


def _sweep(arguments: argparse.Namespace) -> int:
    for option in ("seeds", "lanes"):
        if getattr(arguments, option) < 1:
            raise ValueError(f"--{option} {getattr(arguments, option)}: expected 1 or more")
    over, changes = axes_of(arguments.over), changes_of(arguments.set)
    from flows.recipes.grid import grid

    configs = grid(arguments.name, over, changes).configs  # what is wrong is said before anything is started
    use_server()
    embedded = start_server()
    site = site_of(vars(arguments))
    from flows.sweep import ablation
    from tasks.ingest import locate_sources

    for config in configs:
        locate_sources(site, config.ingest)
    if embedded is not None:
        embedded.wait()
    state = ablation(arguments.name, over, arguments.seeds, changes or None, arguments.lanes, site, return_state=True)
    if not state.is_completed():
        print(f"bsl: the sweep did not finish: {state.message}\nWhat was finished is kept; run again.", file=sys.stderr)
        return 1
    _conclude(site.open_store(), state.result())
    return 0


def axes_of(options: list[str]) -> dict[str, list[Any]]:
    """Field → its values, from `field=value,value` or `field=[…]` as JSON.

    Raises:
        ValueError: an option has another form, or names a field twice.
    """
    axes: dict[str, list[Any]] = {}
    for option in options:
        field, equals, text = option.partition("=")
        if not equals or not text or field in axes:
            raise ValueError(f"--over {option}: expected each field once as FIELD=VALUE,VALUE: training.lr=1e-4,3e-4")
        axes[field] = json.loads(text) if text.startswith("[") else [value_of(part) for part in text.split(",")]
    return axes


def _conclude(store: Store, ref: StudyRef) -> None:
    from models.report.study import figure_rows
    from tasks.study import PAGE, PLOT

    folder = store.fetch(ref)
    title = "Figures × 100 over seeds, with 95 % intervals over seeds and pairs"
    print_table(title, figure_rows(store.scan(ref).collect()))
    print(f"page:    {folder / PAGE}\nplot:    {folder / PLOT}")
