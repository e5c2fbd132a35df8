"""A grid of configurations, each with several seeds: one table and one plot.

Every run goes the way of `bsl run`, so grid points share whatever they have in common, a killed sweep goes on where it
was, and one more value costs its own training alone.
"""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow
from prefect.runtime import flow_run
from pydantic import Field

from flows.config import Overrides
from flows.pipeline import Run, run
from flows.recipes.grid import grid
from flows.site import site_of
from storage.refs import StudyRef
from tasks.evaluation.sets import ScoredSet
from tasks.site import Site
from tasks.stage.logs import show_logs
from tasks.stage.machine import cores
from tasks.study import study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.config import PipelineConfig


def _run_name() -> str:
    return f"{flow_run.parameters['name']}, {flow_run.parameters['seeds']} seeds"


@flow(name="bsl-ablation", flow_run_name=_run_name)
def ablation(
    name: str,
    over: dict[str, list[Any]] | None = None,
    seeds: Annotated[int, Field(ge=1)] = 1,
    overrides: Overrides | None = None,
    lanes: Annotated[int, Field(ge=1)] = 1,
    site: Site | None = None,
) -> StudyRef:
    """Run a grid of configurations, and say which can be told apart.

    Args:
        name: A declared study (`momentum`, `batch`, …), or a recipe that `over` changes.
        over: Field → its values, such as `{"training.objective.momentum": [0.5, 0.999]}`; all combinations are run.
            `recipe` is a field too. Given for a declared study, it takes the place of the study's own.
        seeds: Runs of each point, with `training.seed` 0, 1, ….
        overrides: Other changes, the same for all points.
        lanes: Runs at a time in this process, each with its share of the cores.
        site: Store, mirror and device; by the worker's environment if absent.
    """
    show_logs()
    place = site_of(site)
    asked = grid(name, over or {}, overrides.model_dump(exclude_unset=True) if overrides else {})
    jobs = [config.seeded(seed) for config in asked.configs for seed in range(seeds)]
    runs = _side_by_side(jobs, place, lanes)
    groups = [runs[start : start + seeds] for start in range(0, len(runs), seeds)]
    return study(
        place,
        f"{asked.title}; {seeds} seed{'s' if seeds > 1 else ''}",
        asked.axis,
        asked.points,
        tuple(tuple(finished.system.embeddings for finished in group) for group in groups),
        tuple(tuple(figures for finished in group for figures in finished.scores) for group in groups),
        _compared_sets(runs),
        asked.configs[0].evaluation.bootstrap,
    )


def _side_by_side(jobs: Sequence[PipelineConfig], site: Site, lanes: int) -> list[Run]:
    """The runs in the order of their configurations; the first one alone, for it makes what the others share."""
    first = run(jobs[0], site)
    if lanes == 1:
        return [first, *(run(job, site) for job in jobs[1:])]
    share = site.model_copy(update={"threads": site.threads or max(1, cores() // lanes)})
    with ThreadPoolExecutor(lanes) as pool:
        # Each with a copy of this flow run's context, or its tasks would belong to no run.
        others = [pool.submit(contextvars.copy_context().run, run, job, share) for job in jobs[1:]]
        return [first, *(other.result() for other in others)]


def _compared_sets(runs: Sequence[Run]) -> tuple[ScoredSet, ...]:
    """Scored pairs that all runs have; test sets if there are any, for a dev set chose the encoders."""
    shared = set.intersection(*(set(finished.found.sets) for finished in runs))
    pairs = [wanted for name, wanted in runs[0].found.sets.items() if name in shared and isinstance(wanted, ScoredSet)]
    tests = [wanted for wanted in pairs if wanted.split != "dev"]
    return tuple(tests or pairs)
