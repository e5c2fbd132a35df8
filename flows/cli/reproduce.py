"""`bsl reproduce ROW [--seeds N]`: a published row beside what its recipe measures."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flows.cli.options import add_site_options, print_table
from flows.cli.settings import changes_of, configured
from flows.server import start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse

    from storage.refs import ReproductionRef
    from storage.store import Store


def define_reproduce(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("row", help="a published row, such as BSL-BERT, or a recipe that is held against one")
    parser.add_argument("--seeds", type=int, default=1, help="runs, with training.seed 0, 1, … (1)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="a deviation from the recipe; repeat for more"
    )
    add_site_options(parser)
    parser.set_defaults(call=_reproduce)


def _reproduce(arguments: argparse.Namespace) -> int:
    if arguments.seeds < 1:
        raise ValueError(f"--seeds {arguments.seeds}: expected 1 or more runs")
    from flows.recipes.rows import row_of

    _, name = row_of(arguments.row)
    config = configured(name, arguments.set)
    use_server()
    embedded = start_server()
    site = site_of(vars(arguments))
    from flows.reproduce import reproduction
    from tasks.ingest import locate_sources

    locate_sources(site, config.ingest)  # what is missing is said alone, before a run starts that it would end
    changes = changes_of(arguments.set)
    if embedded is not None:
        embedded.wait()
    state = reproduction(arguments.row, arguments.seeds, changes or None, site, return_state=True)
    if not state.is_completed():
        print(f"bsl: the runs did not finish: {state.message}\nWhat was finished is kept; run again.", file=sys.stderr)
        return 1
    _conclude(site.open_store(), state.result())
    return 0


def _conclude(store: Store, ref: ReproductionRef) -> None:
    from models.report.reproduction import figure_rows
    from tasks.reproduce import PAGE

    page = store.fetch(ref) / PAGE
    head, _, _ = page.read_text(encoding="utf-8").partition("## Figures")
    print(head.removeprefix("# ").rstrip())
    print_table("Published and measured, × 100", figure_rows(store.scan(ref).collect()))
    print(f"page:    {page}")
