"""A published row, run again: a sweep of its recipe over seeds, and the measured figures beside the printed ones."""

from __future__ import annotations

from typing import Annotated

from prefect import flow
from prefect.runtime import flow_run
from pydantic import Field

from flows.config import Overrides, override
from flows.pipeline import Run
from flows.recipes import recipe
from flows.recipes.published_rows import RECORDS, cells_of, deviations, row_of
from flows.run_context import run_context_of, tell_precision
from flows.sweep.points import attempts_of, run_points
from models.evaluation.reproduction import MARGIN
from storage.artifacts.refs import ReproductionRef
from tasks.reporting.reproduction import RowComparison, reproduce
from tasks.stage.log_context import show_logs
from tasks.stage.run_context import RunContext


def _run_name() -> str:
    return f"{flow_run.parameters['row']}, {flow_run.parameters['seeds']} seeds"


@flow(name="bsl-reproduce", flow_run_name=_run_name)
def reproduction(
    row: str,
    seeds: Annotated[int, Field(ge=1)] = 1,
    overrides: Overrides | None = None,
    site: RunContext | None = None,
    margin: Annotated[float, Field(gt=0)] = MARGIN,
) -> ReproductionRef:
    """Run the recipe behind a published row, and say whether it gives the row's figures.

    Args:
        row: Name of the row, such as `BSL-BERT`, or of a recipe.
        seeds: Runs, each with its seed, 0, 1, …. One has no spread, so that the verdict is INCONCLUSIVE.
        overrides: Fields of the recipe to change, each of which counts as a deviation from the row.
        site: Store, mirror and device; by the worker's environment if absent.
        margin: Points by which equivalent figures may differ.
    """
    show_logs()
    place = run_context_of(site)
    published, name = row_of(row)
    config = override(recipe(name), overrides or {})
    tell_precision(place, config.precisions)
    outcomes = run_points(attempts_of(published, name, config, seeds, place), place)
    if fault := next((outcome for outcome in outcomes if not isinstance(outcome, Run)), None):
        raise fault
    reports = tuple(outcome.report for outcome in outcomes if isinstance(outcome, Run))
    why = deviations(config, published)
    cells, draws = cells_of(published, name), len(config.runs(2)) > 1
    comparison = RowComparison(
        row=published,
        cells=cells,
        system=config.result,
        deviations=why,
        records=RECORDS,
        margin=margin,
        draws=draws,
    )
    return reproduce(place, reports, comparison)
