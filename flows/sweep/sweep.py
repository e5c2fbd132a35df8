"""Flows over seeds: a grid of configurations as one table and chart; a recipe compared with its published row.

Every run is a `bsl run`, so points share cached artifacts, a killed sweep resumes, and another value costs only its
training. All points run their first seed before any second seed. If a run cannot be trained or scored, its point has no
figure for that seed, and the page states the reason.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from prefect.runtime import flow_run
from pydantic import Field

from bsl.flows.checked_flow import flow
from bsl.flows.config import override
from bsl.flows.own_options import OwnRequest
from bsl.flows.pipeline import Overrides
from bsl.flows.recipes import recipe
from bsl.flows.recipes.published_rows import RECORDS, cells_of, deviations, row_of
from bsl.flows.run_context import Seeds, Setting, Site, announce_precision, check_workers, command_of, run_context_of
from bsl.flows.sweep.grid import Grid, grid
from bsl.flows.sweep.own import START, check_own
from bsl.flows.sweep.own_run import own_study
from bsl.flows.sweep.points import jobs_of, run_points, unless_stopped, with_runs
from bsl.models.errors import EvaluationError, ModelError
from bsl.models.evaluation.config import MARGIN
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.filesystem.urls import Public
from bsl.storage.record import FINITE, LARGEST, WHOLE
from bsl.tasks.evaluation.kinds import available, frozen_names, shared_names, undrawn
from bsl.tasks.rendering.numbers import counted
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.reproduction import RowComparison, reproduce
from bsl.tasks.reporting.sweep.compare import compare_systems
from bsl.tasks.reporting.sweep.inputs import SweepSettings
from bsl.tasks.reporting.sweep.runs import without_dev_sets
from bsl.tasks.stage.log_context import show_logs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _run_name() -> str:
    return f"{flow_run.parameters['name']}, {counted(flow_run.parameters['seeds'], 'seed')}"


@flow(name="bsl-sweep", flow_run_name=_run_name)
def ablation(
    name: Public,
    over: dict[str, list[Setting]] | None = None,
    seeds: Seeds = 1,
    overrides: Overrides | None = None,
    against: list[Public] | None = None,
    workers: Annotated[int, Field(ge=1, le=LARGEST), WHOLE] | None = None,
    site: Site | None = None,
    own: OwnRequest | None = None,
) -> ArtifactRef:
    """Run a grid of configurations, and compare them.

    Args:
        name: A declared study (`momentum`, `batch`, …; `own` on your text), or a recipe that `over` changes.
        over: Field → values, such as `{"training.objective.momentum": [0.5, 0.999]}`; all combinations are run.
            `recipe` is also a field. Overrides the axes of a declared study.
        seeds: Runs of each point that depends on the seed, with `training.seed` 0, 1, ….
        overrides: Other changes, the same for all points; changes of `training` apply to the points that train.
        against: Labels of the points that all others are compared with; defaults to those of the study, else the first.
        workers: Worker processes of this machine (Dask), which share the runs and the cores, or have a GPU each.
            Defaults to none: this process executes all runs. On a pool, the number of runs at a time, 256 by default.
        site: Store, mirror and device; defaults to the worker's environment. With a `cluster`, its workers run the
            points; with `pool`, those of a work pool.
        own: Text, labels and original encoder of the study `own`.
    """
    show_logs()
    context, changes = run_context_of(site), overrides or {}
    check_workers(workers, context)
    check_own(name, own)
    study = own_study(context, own, changes) if own else None
    points = grid(name, over or {}, changes, against or (), study.study if study else None)
    names = [frozen_names(config.evaluation.sets) for config in points.configs]
    drawn = available(context, _shared_names(points, names)).drawn  # raises before any training if no set is found
    tests = without_dev_sets(drawn, [config.model_dump(mode="json") for config in points.configs])
    announce_precision(context, points.configs[0].precisions)
    rows = zip(points.points, points.recipes, points.configs, strict=True)
    jobs = {point.label: jobs_of(recipe_name, config, seeds, context) for point, recipe_name, config in rows}
    outcomes = {
        label: [unless_stopped(f"{label}, seed {seed}", outcome, context) for seed, outcome in enumerate(of_point)]
        for label, of_point in run_points(jobs, context, workers).items()
    }
    faults = [outcome for of_point in outcomes.values() for outcome in of_point if isinstance(outcome, ModelError)]
    if len(faults) == sum(map(len, outcomes.values())):
        raise faults[0]
    if study and isinstance(outcomes[START][0], ModelError):
        raise outcomes[START][0]  # without it there is nothing to compare with
    systems = tuple(with_runs(point, outcomes[point.label]) for point in points.points)
    settings = SweepSettings(
        title=f"{points.title}; {counted(seeds, 'seed')}",
        axis=points.axis,
        sets=tests or drawn,
        others=undrawn(names),
        references=points.references,
        shown=points.shown,
        config=points.configs[0].evaluation.bootstrap,
    )
    if study:
        settings = study.compared(settings, outcomes)
    command = _command(name, over or {}, seeds, changes, against or (), own)
    return compare_systems(context, systems, settings, RunCommand(command=command))


def _command(
    name: str,
    over: Mapping[str, list[Any]],
    seeds: int,
    changes: Mapping[str, Any],
    against: Sequence[str],
    own: OwnRequest | None,
) -> str:
    asked = [word for field, values in over.items() for word in ("--over", f"{field}={json.dumps(values)}")]
    references = [word for label in against for word in ("--against", label)]
    options: dict[str, str | None] = {"seeds": str(seeds) if seeds > 1 else None}
    text: tuple[str, ...] = ()
    if own:
        text = ("--text", *own.text)
        options |= own.model_dump(exclude={"text"}, exclude_defaults=True)
    return command_of("sweep", [name, *text, *asked, *references], options, changes)


def _shared_names(points: Grid, names: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of the sets that every point is scored on.

    Raises:
        EvaluationError: There is no such set.
    """
    if shared := shared_names(names):
        return shared
    scored = "; ".join(
        f"{point.label} on {', '.join(config.evaluation.sets)}"
        for point, config in zip(points.points, points.configs, strict=True)
    )
    raise EvaluationError(
        f"the points share no set that all of them are scored on ({scored}). Set evaluation.sets for all points"
    )


def _reproduction_name() -> str:
    return f"{flow_run.parameters['row']}, {counted(flow_run.parameters['seeds'], 'seed')}"


@flow(name="bsl-reproduce", flow_run_name=_reproduction_name)
def reproduction(
    row: Public,
    seeds: Seeds = 1,
    overrides: Overrides | None = None,
    site: Site | None = None,
    margin: Annotated[float, Field(gt=0, le=100), FINITE] = MARGIN,
) -> ArtifactRef:
    """Run the recipe of a published row, and compare its figures with the row.

    Args:
        row: Name of the row, such as `BSL-BERT`, or of a recipe.
        seeds: Runs, with seeds 0, 1, …. A single run has no spread, so its verdict is INCONCLUSIVE.
        overrides: Fields of the recipe to change; each change is a deviation from the row.
        site: Store, mirror and device; defaults to the worker's environment.
        margin: Maximum difference, in points, of equivalent figures.
    """
    show_logs()
    context = run_context_of(site)
    published, name = row_of(row)
    config = override(recipe(name), overrides or {})
    announce_precision(context, config.precisions)
    outcomes = run_points({published: jobs_of(name, config, seeds, context)}, context)[published]
    reports = []
    for outcome in outcomes:
        if isinstance(outcome, ModelError):
            raise outcome
        reports.append(outcome.report)
    comparison = RowComparison(
        row=published,
        cells=cells_of(published, name),
        system=config.result,
        deviations=deviations(config, published),
        records=RECORDS,
        margin=margin,
        draws=len(config.runs(2)) > 1,
    )
    return reproduce(context, tuple(reports), comparison)
