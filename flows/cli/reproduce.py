"""`bsl reproduce ROW [--seeds N]`: a published row beside what its recipe measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from flows.cli.terminal.options import AskedPrecision, Changes, Output, Site
from flows.cli.terminal.overrides import changes_of, configured, with_precision
from flows.cli.terminal.printing import print_json, print_line, print_table
from flows.cli.terminal.start import begin
from models.evaluation.reproduction import MARGIN

if TYPE_CHECKING:
    from storage.artifacts.refs import ReproductionRef
    from storage.artifacts.store import Store


def reproduce(
    row: Annotated[str, Parameter(help="a published row, such as BSL-BERT, or a recipe that is compared with one")],
    /,
    *,
    seeds: Annotated[int, Parameter(help="runs, with training.seed 0, 1, …; a verdict takes 2 or more")] = 1,
    margin: Annotated[
        float, Parameter(help="maximum distance in points from the published figure for REPRODUCED")
    ] = MARGIN,
    settings: Changes = (),
    precision: AskedPrecision = None,
    place: Site = Site(),
    output: Output = Output(),
) -> int:
    """Run the recipe behind a published row, and compare it with the row."""
    if seeds < 1:
        raise ValueError(f"--seeds {seeds}: expected 1 or more runs")
    if not margin > 0:
        raise ValueError(f"--margin {margin}: expected points above 0, such as {MARGIN}")
    from flows.recipes import recipe
    from flows.recipes.published_rows import row_of

    _, name = row_of(row)
    asked = with_precision(precision, recipe(name).precisions, settings)
    configs, changes = configured(name, asked).runs(1), changes_of(asked)
    start = begin(place, output)
    from flows.sweep.reproduce import reproduction

    ref = start.run(reproduction, configs, row=row, seeds=seeds, margin=margin, overrides=changes or None)
    if ref is None:
        return 1
    store = start.site.open_store()
    if output.json:
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
