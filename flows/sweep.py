"""A grid of configurations, each with several seeds: one table and one plot.

Every run goes the way of `bsl run`, so grid points share whatever they have in common, a killed sweep goes on where it
was, and one more value costs its own training alone. Every point has its first seed before any has its second.
"""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from prefect import flow
from prefect.runtime import flow_run
from pydantic import Field

from flows.config import Overrides
from flows.pipeline import Run, run
from flows.pool import Job, run_on_pool
from flows.recipes.grid import Grid, grid
from flows.site import site_of
from storage.refs import StudyRef
from tasks.evaluation.sets import ScoredSet
from tasks.site import Site
from tasks.stage.logs import show_logs
from tasks.stage.machine import cores
from tasks.stage.spread import crew, errand, spread
from tasks.stage.watch import planning
from tasks.study import study

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def _run_name() -> str:
    return f"{flow_run.parameters['name']}, {flow_run.parameters['seeds']} seeds"


@flow(name="bsl-ablation", flow_run_name=_run_name)
def ablation(
    name: str,
    over: dict[str, list[Any]] | None = None,
    seeds: Annotated[int, Field(ge=1)] = 1,
    overrides: Overrides | None = None,
    against: list[str] | None = None,
    lanes: Annotated[int, Field(ge=1)] | None = None,
    site: Site | None = None,
) -> StudyRef:
    """Run a grid of configurations, and say which can be told apart.

    Args:
        name: A declared study (`momentum`, `batch`, …), or a recipe that `over` changes.
        over: Field → its values, such as `{"training.objective.momentum": [0.5, 0.999]}`; all combinations are run.
            `recipe` is a field too. Given for a declared study, it takes the place of the study's own.
        seeds: Runs of each point that draws anything, with `training.seed` 0, 1, ….
        overrides: Other changes, the same for all points; those of `training` reach the points that train.
        against: Labels of the points that all others are compared with; a study's own, or the first, if absent.
        lanes: Runs at a time: one in this process, each further one with its share of the cores; all on a pool.
        site: Store, mirror and device; by the worker's environment if absent. Its `runner` says where points are run:
            `threads` in this process, `dask` and `ray` on their workers, `pool` each as a run of deployment
            `bsl-pipeline/<recipe>`, whose workers share the store; this flow's own run takes a place of its pool
            beside them.
    """
    show_logs()
    place = site_of(site)
    asked = grid(name, over or {}, overrides.model_dump(exclude_unset=True) if overrides else {}, against or ())
    jobs = _jobs(asked, seeds)
    if place.runner == "pool":
        finished = _on_pool(list(jobs.values()), place, lanes)
    else:
        with crew(place):
            finished = _here(list(jobs.values()), place, lanes or 1)
    runs = dict(zip(jobs, finished, strict=True))
    groups = [[runs[at] for at in sorted(runs) if at.point == point] for point in range(len(asked.points))]
    return study(
        place,
        f"{asked.title}; {seeds} seed{'s' if seeds > 1 else ''}",
        asked.axis,
        asked.points,
        tuple(tuple(left.system.embeddings for left in group) for group in groups),
        tuple(tuple(figures for left in group for figures in left.scores) for group in groups),
        _compared_sets(finished),
        asked.references,
        asked.shown,
        asked.configs[0].evaluation.bootstrap,
    )


class _Place(NamedTuple):
    """A run's place in the sweep; all points have their first seed first."""

    seed: int
    point: int


def _jobs(asked: Grid, seeds: int) -> dict[_Place, Job]:
    pairs = zip(asked.recipes, asked.configs, strict=True)
    jobs = {
        _Place(seed, point): Job(recipe, config)
        for point, (recipe, base) in enumerate(pairs)
        for seed, config in enumerate(base.runs(seeds))
    }
    return dict(sorted(jobs.items(), key=lambda item: item[0]))


def _here(jobs: Sequence[Job], site: Site, lanes: int) -> list[Run]:
    share = site.model_copy(update={"threads": site.threads or max(1, cores() // lanes)}) if lanes > 1 else site
    first = run(jobs[0].config, site)  # alone, for it makes what the others share
    if site.runner != "threads":
        spread(site, [run_point.errand(job.recipe, recipe=job.recipe, overrides=job.overrides) for job in jobs[1:]])
    return [first, *_side_by_side(jobs[1:], lambda job: run(job.config, share), lanes)]


@errand
def run_point(site: Site, recipe: str, overrides: dict[str, Any]) -> None:
    """Run a point to its report."""
    run(Job.of(recipe, overrides).config, site)


def _on_pool(jobs: Sequence[Job], site: Site, lanes: int | None) -> list[Run]:
    with planning():
        plans = [(job, run(job.config, site)) for job in jobs]
    first = run_on_pool(*plans[0], site)
    off = Event()
    others = _side_by_side(plans[1:], lambda plan: run_on_pool(*plan, site, off), lanes or len(jobs), off)
    return [first, *others]


def _side_by_side(jobs: Sequence[T], way: Callable[[T], Run], lanes: int, off: Event | None = None) -> list[Run]:
    """The runs in the order of their jobs; Ctrl-C and SIGTERM, which only this thread gets, set `off`."""
    if lanes == 1:
        return [way(job) for job in jobs]
    with ThreadPoolExecutor(lanes) as pool:
        # Each with a copy of this flow run's context, or its tasks would belong to no run.
        runs = [pool.submit(contextvars.copy_context().run, way, job) for job in jobs]
        try:
            return [finished.result() for finished in runs]
        except BaseException as error:
            if not isinstance(error, Exception):
                pool.shutdown(wait=False, cancel_futures=True)
                if off is not None:
                    off.set()
            raise


def _compared_sets(runs: Sequence[Run]) -> tuple[ScoredSet, ...]:
    """Scored pairs that all runs have; test sets if there are any, for a dev set chose the encoders."""
    shared = set.intersection(*(set(finished.found.sets) for finished in runs))
    pairs = [wanted for name, wanted in runs[0].found.sets.items() if name in shared and isinstance(wanted, ScoredSet)]
    pairs = [wanted for wanted in pairs if all(finished.system.of((wanted,)) for finished in runs)]
    tests = [wanted for wanted in pairs if wanted.split != "dev"]
    return tuple(tests or pairs)
