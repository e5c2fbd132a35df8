"""`bsl reproduce ROW [--seeds N]`: a published row beside what its recipe measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from flows.cli.terminal.options import add_json, add_settings, add_site_options, print_json, print_line, print_table
from flows.cli.terminal.overrides import changes_of, configured
from flows.cli.terminal.start import begin
from models.evaluation.reproduction import MARGIN

if TYPE_CHECKING:
    import argparse

    from storage.artifacts.refs import ReproductionRef
    from storage.artifacts.store import Store


def define_reproduce(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "row", metavar="ROW", help="a published row, such as BSL-BERT, or a recipe that is held against one"
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="runs, with training.seed 0, 1, … (1; a verdict takes 2 or more)"
    )
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="POINTS",
        help=f"REPRODUCED within this distance of the printed figure ({MARGIN})",
    )
    add_settings(parser, "a deviation from the recipe")
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_reproduce)


def _reproduce(arguments: argparse.Namespace) -> int:
    if arguments.seeds < 1:
        raise ValueError(f"--seeds {arguments.seeds}: expected 1 or more runs")
    if not arguments.margin > 0:
        raise ValueError(f"--margin {arguments.margin}: expected points above 0, such as {MARGIN}")
    from flows.recipes.published_rows import row_of

    _, name = row_of(arguments.row)
    configs, changes = configured(name, arguments.set).runs(1), changes_of(arguments.set)
    start = begin(arguments)
    from flows.sweep.reproduce import reproduction

    asked = {"row": arguments.row, "seeds": arguments.seeds, "margin": arguments.margin}
    ref = start.run(reproduction, configs, **asked, overrides=changes or None)
    if ref is None:
        return 1
    store = start.site.open_store()
    if arguments.json:
        rows = store.scan(ref).collect().to_dicts()
        print_json({"reproduction": ref.path, **store.manifest(ref).figures, "figures": rows})
    else:
        _conclude(store, ref)
    return 0


def _conclude(store: Store, ref: ReproductionRef) -> None:
    from tasks.reporting.publish import page_of
    from tasks.reporting.reproduction import figure_rows

    for line in cast("list[str]", store.manifest(ref).figures["said"]):
        print_line(line)
    print_table("Published and measured, × 100", figure_rows(store.scan(ref).collect()))
    print(f"page:    {page_of(store, ref)}")
