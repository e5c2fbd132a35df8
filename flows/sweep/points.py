"""Execute the runs of a sweep; a run that cannot be trained or scored is reported, and the others continue.

A run is one seed of a point: of a configuration, or of a method on the user's text. It executes in this process, in
processes of this machine, on a Dask cluster or, for configurations, on a work pool. This process computes the keys of
the same artifacts, so the result is the same everywhere.
"""

from __future__ import annotations

import contextvars
import logging
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from flows.config import difference
from flows.pipeline import run
from flows.recipes import recipe
from flows.run_context import fix_precision
from models.errors import InterruptedRunError, ModelError, TrainingError, TranslationStoppedError
from models.evaluation.verdict import STOPPED
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.device import cores
from tasks.stage.lanes import DiedError, StoppedError, run_apart
from tasks.stage.pool import FailedRunError, Order, PoolError, run_on_pool
from tasks.stage.progress import announce, planning, warn
from tasks.stage.shards import ClusterError, on_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flows.config import PipelineConfig
    from tasks.stage.run_context import RunContext

Of = TypeVar("Of")
Made = TypeVar("Made")
Outcome: TypeAlias = SweepSystem | ModelError
"""Artifacts of a run, or its error."""

logger = logging.getLogger(__name__)

_ENDING = (InterruptedRunError, TranslationStoppedError, PoolError, ClusterError, StoppedError)  # they end the sweep
_ON_POOL = 256  # maximum number of unfinished runs


class PointJob(Protocol):
    """The work of one run; it is sent to other processes and machines unchanged."""

    def run(self, site: RunContext) -> SweepSystem:
        """Make all artifacts of the run, or find them."""


@dataclass(frozen=True)
class Job:
    """A recipe's configuration with changes.

    Attributes:
        recipe: its name.
        config: the configuration.
    """

    recipe: str
    config: PipelineConfig

    @property
    def overrides(self) -> dict[str, Any]:
        """The changes from the recipe to this configuration, for `flows.config.override`."""
        return difference(recipe(self.recipe), self.config)

    def run(self, site: RunContext) -> SweepSystem:
        """Run the configuration to its report."""
        made = run(self.config, site)
        return SweepSystem(label="", report=made.report, embeddings=(made.system.embeddings,), scores=made.scores)

    def parameters(self, site: RunContext) -> dict[str, Any]:
        """Return the parameters of the run on a work pool, whose workers share store, mirror and kind of device.

        The other runtime settings (cache, GPU number, processes) are those of each worker.
        """
        shared = site.abroad().model_dump(mode="json", exclude_unset=True)
        return {"recipe_name": self.recipe, "overrides": self.overrides, "site": shared}


@dataclass(frozen=True)
class PointRun:
    """A run of a sweep.

    Attributes:
        name: its point and seed.
        job: its work.
    """

    name: str
    job: PointJob


def jobs_of(recipe: str, config: PipelineConfig, seeds: int, site: RunContext) -> list[Job]:
    """Return a job for each seed of a configuration.

    Args:
        recipe: name of its recipe.
        config: the configuration; `auto` precision is resolved here, so that all workers compute the same artifacts.
        seeds: number of seeds, if the configuration depends on the seed.
        site: runtime settings with the device that resolves `auto`.
    """
    return [Job(recipe, own) for own in fix_precision(config, site).runs(seeds)]


def is_fault(error: BaseException) -> bool:
    """Whether an error is the point's own, such as a diverged training, and not a machine failure or interruption."""
    if isinstance(error, FailedRunError):
        return error.kind in {kind.__name__ for kind in _own(ModelError)}
    return isinstance(error, ModelError) and not isinstance(error, _ENDING)


def _own(kind: type[ModelError]) -> Iterator[type[ModelError]]:
    """Yield the error classes that are a point's own; a work pool reports only their names."""
    if not issubclass(kind, _ENDING):
        yield kind
        for narrower in kind.__subclasses__():
            yield from _own(narrower)


def run_by_seed(
    points: Mapping[str, Sequence[PointJob]], site: RunContext, lanes: int | None = None
) -> dict[str, list[Outcome]]:
    """Execute the runs of all points, the first seed of each before any second seed.

    Args:
        points: label → jobs, one per seed.
        site: see `run_points`.
        lanes: see `run_points`.

    Returns:
        Label → the outcome of each of its runs.

    Raises:
        Exception: as `run_points`.
    """
    every = ((seed, label, job) for label, jobs in points.items() for seed, job in enumerate(jobs))
    ordered = sorted(every, key=itemgetter(0))
    runs = [PointRun(f"{label}, seed {seed}", job) for seed, label, job in ordered]
    ended: dict[str, list[Outcome]] = {label: [] for label in points}
    for (_, label, _), outcome in zip(ordered, run_points(runs, site, lanes), strict=True):
        ended[label].append(outcome)
    return ended


def with_runs(point: SweepSystem, outcomes: Sequence[Outcome]) -> SweepSystem:
    """Return a point with the artifacts of its runs, and the errors of failed runs."""
    runs = [made for made in outcomes if isinstance(made, SweepSystem)]
    faults = [f"seed {seed}: {found}" for seed, found in enumerate(outcomes) if isinstance(found, ModelError)]
    own = {
        field: tuple(value for made in runs for value in getattr(made, field))
        for field in ("embeddings", "scores", "checkpoints")
    }
    shared = {field: getattr(runs[0], field) for field in ("steps", "pace", "translators") if runs}
    notes = tuple(dict.fromkeys(note for made in runs for note in made.notes))
    return point.model_copy(update={**own, **shared, "notes": notes, "faults": tuple(faults)})


def run_points(attempts: Sequence[PointRun], site: RunContext, lanes: int | None = None) -> list[Outcome]:
    """Execute all runs of a sweep.

    Args:
        attempts: the runs; the first executes alone, since it makes the artifacts that all share.
        site: store and device; its cluster or, for configurations, its work pool executes the runs.
        lanes: number of parallel runs, each in a process of this machine; on a pool, maximum number of unfinished
            runs. None: 1 here, 256 on a pool.

    Returns:
        The outcome of each run, in their order.

    Raises:
        Exception: an error that is not a run's own (`is_fault`).
    """
    if site.pool:
        return _on_pool(attempts, site, lanes or _ON_POOL)
    first, others = attempts[0], attempts[1:]
    outcomes = [_logged(first, _outcome(first, site))]
    if site.cluster is not None:
        made = on_cluster(site, run_point, [(attempt.job,) for attempt in others])
        elsewhere = list(map(_logged, others, made))
    elif lanes is not None and lanes > 1:
        elsewhere = _in_lanes(others, site, lanes)
    else:
        return outcomes + [_logged(each, _outcome(each, site)) for each in others]
    # Repeat the run here: it finds all its artifacts in the store.
    ended = zip(others, elsewhere, strict=True)
    return outcomes + [found if isinstance(found, ModelError) else _outcome(each, site) for each, found in ended]


def unless_stopped(name: str, outcome: Outcome, site: RunContext) -> Outcome:
    """Return the outcome of a run; an error if its training was stopped, since its figures are those of the start."""
    store = site.open_store()
    if isinstance(outcome, ModelError) or outcome.report is None or store.defect(outcome.report):  # of a dry run
        return outcome
    figures = store.manifest(outcome.report).figures
    if figures.get("verdict") != STOPPED:
        return outcome
    fault = TrainingError(str(figures["reason"]))
    warn("%s is left without a figure: %s", name, fault)
    return fault


def run_point(site: RunContext, job: PointJob) -> Outcome:
    """Execute a job, possibly in another process; return its own error (`is_fault`).

    Args:
        site: runtime settings of that process.
        job: the job.

    Raises:
        Exception: an error that is not the run's own.
    """
    try:
        return job.run(site)
    except ModelError as error:
        if is_fault(error):
            return error
        raise


def _outcome(attempt: PointRun, site: RunContext) -> Outcome:
    with _named(attempt):
        return run_point(site, attempt.job)


@contextmanager
def _named(attempt: PointRun) -> Iterator[None]:
    """Log the name of a run whose error ends the sweep."""
    try:
        yield
    except Exception as error:
        logger.error("%s: %s", attempt.name, error)  # noqa: TRY400 - who catches it shows the rest
        raise


def _logged(attempt: PointRun, outcome: Of) -> Of:
    """Log how a run ended."""
    if isinstance(outcome, ModelError):
        warn("%s is left without a figure: %s", attempt.name, outcome)
    else:
        announce(f"{attempt.name}: done")
    return outcome


def _in_lanes(attempts: Sequence[PointRun], site: RunContext, lanes: int) -> list[Outcome | None]:
    """Execute runs in processes of this machine."""
    share = site.model_copy(update={"threads": site.threads or max(1, cores() // lanes)})
    off = Event()

    def make(attempt: PointRun) -> Outcome | None:
        with _named(attempt):
            try:
                return _logged(attempt, run_apart(run_point, share, (attempt.job,), off))
            except DiedError as error:
                return _logged(attempt, error)

    return side_by_side(attempts, make, lanes, off)


def _on_pool(attempts: Sequence[PointRun], site: RunContext, at_once: int) -> list[Outcome]:
    """Execute runs on a work pool; a run that fails in planning is not sent."""
    with planning():
        outcomes = [_outcome(attempt, site) for attempt in attempts]
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        if isinstance(outcome, ModelError):
            _logged(attempt, outcome)
    sent = [number for number, outcome in enumerate(outcomes) if not isinstance(outcome, ModelError)]
    for some in (sent[:1], sent[1:]):

        def end(position: int, fault: PoolError | None, some: Sequence[int] = some) -> None:
            number = some[position]
            if fault is not None and not is_fault(fault):
                with _named(attempts[number]):
                    raise fault
            outcomes[number] = _logged(attempts[number], fault or outcomes[number])

        orders = [_order(attempts[number].job, outcomes[number], site) for number in some]
        run_on_pool(orders, site, at_once, end)
    return outcomes


def _order(job: PointJob, planned: Outcome, site: RunContext) -> Order:
    assert isinstance(job, Job)  # a work pool runs only recipes
    assert isinstance(planned, SweepSystem)
    assert planned.report is not None
    return Order(job.parameters(site), (planned.report, *planned.embeddings, *planned.scores))


def side_by_side(attempts: Sequence[Of], make: Callable[[Of], Made], lanes: int, off: Event) -> list[Made]:
    """Call `make` in threads, at most `lanes` at a time; after an error, no call starts and running ones finish.

    Ctrl-C and SIGTERM, which only this thread receives, set `off`, which also stops running calls.
    """
    with ThreadPoolExecutor(lanes) as pool:
        try:
            # Without a copy of this flow run's context, a thread's tasks would belong to no run.
            runs = [pool.submit(contextvars.copy_context().run, make, attempt) for attempt in attempts]
            for finished in as_completed(runs):
                finished.result()  # raises the first error of any run
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):
                off.set()
            raise
        return [finished.result() for finished in runs]
