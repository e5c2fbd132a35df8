"""Execute the runs of a sweep; a run that cannot be trained or scored is reported, and the others continue.

A run is one seed of a point, which is a configuration or a method on the user's text. It executes in this process, in
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
from tasks.stage.cluster import ClusterError, on_cluster
from tasks.stage.device import cores
from tasks.stage.lanes import DiedError, StoppedError, run_apart
from tasks.stage.pool import FailedRunError, Order, PoolError, run_on_pool
from tasks.stage.progress import announce, planning, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flows.config import PipelineConfig
    from tasks.stage.run_context import RunContext

Item = TypeVar("Item")
Made = TypeVar("Made")
Outcome: TypeAlias = SweepSystem | ModelError
"""Artifacts of a run, or its error."""

logger = logging.getLogger(__name__)

_END_SWEEP = (InterruptedRunError, TranslationStoppedError, PoolError, ClusterError, StoppedError)
_ON_POOL = 256  # maximum number of unfinished runs


class PointJob(Protocol):
    """The work of one run; it is sent to other processes and machines unchanged."""

    def run(self, site: RunContext) -> SweepSystem:
        """Make all artifacts of the run, or find them in the store."""


@dataclass(frozen=True)
class Job:
    """A recipe's configuration with changes.

    Attributes:
        recipe: Name of the recipe.
        config: The complete configuration.
    """

    recipe: str
    config: PipelineConfig

    @property
    def overrides(self) -> dict[str, Any]:
        """Changes from the recipe to this configuration, for `flows.config.override`."""
        return difference(recipe(self.recipe), self.config)

    def run(self, site: RunContext) -> SweepSystem:
        """Run the configuration to its report."""
        result = run(self.config, site)
        return SweepSystem(label="", report=result.report, embeddings=(result.system.embeddings,), scores=result.scores)

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
        name: Point and seed.
        job: Work of the run.
    """

    name: str
    job: PointJob


def jobs_of(recipe: str, config: PipelineConfig, seeds: int, site: RunContext) -> list[Job]:
    """Return a job for each seed of a configuration.

    Args:
        recipe: Name of its recipe.
        config: The configuration; `auto` precision is resolved here, so that all workers compute the same artifacts.
        seeds: Number of seeds, if the configuration depends on the seed.
        site: Runtime settings with the device that resolves `auto`.
    """
    return [Job(recipe, seeded) for seeded in fix_precision(config, site).runs(seeds)]


def is_fault(error: BaseException) -> bool:
    """Return whether an error is a fault of the point, such as a diverged training; other errors end the sweep."""
    if isinstance(error, FailedRunError):
        return error.kind in {kind.__name__ for kind in _fault_types(ModelError)}
    return isinstance(error, ModelError) and not isinstance(error, _END_SWEEP)


def _fault_types(kind: type[ModelError]) -> Iterator[type[ModelError]]:
    """Yield the classes of a point's faults; a work pool reports only the name of an error's class."""
    if not issubclass(kind, _END_SWEEP):
        yield kind
        for subclass in kind.__subclasses__():
            yield from _fault_types(subclass)


def run_points(
    points: Mapping[str, Sequence[PointJob]], site: RunContext, lanes: int | None = None
) -> dict[str, list[Outcome]]:
    """Execute the runs of all points, the first seed of all points before any second seed.

    The first run executes alone, because it makes the artifacts that all runs share.

    Args:
        points: Label → jobs, one per seed.
        site: Store and device; its cluster or, for configurations, its work pool executes the runs.
        lanes: Number of parallel runs, each in a process of this machine; on a pool, maximum number of unfinished
            runs. None: 1 here, 256 on a pool.

    Returns:
        Label → outcomes of its runs.

    Raises:
        Exception: An error that is not a fault of a run (`is_fault`).
    """
    jobs = ((seed, label, job) for label, of_point in points.items() for seed, job in enumerate(of_point))
    ordered = sorted(jobs, key=itemgetter(0))
    runs = [PointRun(f"{label}, seed {seed}", job) for seed, label, job in ordered]
    outcomes: dict[str, list[Outcome]] = {label: [] for label in points}
    for (_, label, _), outcome in zip(ordered, _outcomes(runs, site, lanes), strict=True):
        outcomes[label].append(outcome)
    return outcomes


def with_runs(point: SweepSystem, outcomes: Sequence[Outcome]) -> SweepSystem:
    """Return a point with the artifacts of its runs, and the errors of failed runs."""
    runs = [outcome for outcome in outcomes if isinstance(outcome, SweepSystem)]
    faults = [f"seed {seed}: {outcome}" for seed, outcome in enumerate(outcomes) if isinstance(outcome, ModelError)]
    joined = {
        field: tuple(value for run in runs for value in getattr(run, field))
        for field in ("embeddings", "scores", "checkpoints")
    }
    shared = {field: getattr(runs[0], field) for field in ("steps", "pace", "translators") if runs}
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    return point.model_copy(update={**joined, **shared, "notes": notes, "faults": tuple(faults)})


def _outcomes(attempts: Sequence[PointRun], site: RunContext, lanes: int | None) -> list[Outcome]:
    """Return the outcomes of runs, in their order."""
    if site.pool:
        return _on_pool(attempts, site, lanes or _ON_POOL)
    first, others = attempts[0], attempts[1:]
    outcomes = [_logged(first, _outcome(first, site))]
    if site.cluster is not None:
        on_workers = on_cluster(site, run_point, [(attempt.job,) for attempt in others])
        remote = list(map(_logged, others, on_workers))
    elif lanes is not None and lanes > 1:
        remote = _in_lanes(others, site, lanes)
    else:
        return outcomes + [_logged(attempt, _outcome(attempt, site)) for attempt in others]
    # Repeating a run here finds all its artifacts in the store.
    pairs = zip(others, remote, strict=True)
    return outcomes + [found if isinstance(found, ModelError) else _outcome(attempt, site) for attempt, found in pairs]


def unless_stopped(name: str, outcome: Outcome, site: RunContext) -> Outcome:
    """Return the outcome of a run; an error if its training was stopped, so that it reports the original encoder."""
    store = site.open_store()
    if isinstance(outcome, ModelError) or outcome.report is None or store.defect(outcome.report):  # in a dry run
        return outcome
    figures = store.manifest(outcome.report).figures
    if figures.get("verdict") != STOPPED:
        return outcome
    fault = TrainingError(str(figures["reason"]))
    warn("%s has no figure: %s", name, fault)
    return fault


def run_point(site: RunContext, job: PointJob) -> Outcome:
    """Execute a job, possibly in another process; return its outcome or its fault (`is_fault`); raise other errors."""
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
        logger.error("%s: %s", attempt.name, error)  # noqa: TRY400 - the caller shows the traceback
        raise


def _logged(attempt: PointRun, outcome: Item) -> Item:
    """Log how a run ended."""
    if isinstance(outcome, ModelError):
        warn("%s has no figure: %s", attempt.name, outcome)
    else:
        announce(f"{attempt.name}: done")
    return outcome


def _in_lanes(attempts: Sequence[PointRun], site: RunContext, lanes: int) -> list[Outcome | None]:
    """Execute runs in processes of this machine."""
    lane_site = site.model_copy(update={"threads": site.threads or max(1, cores() // lanes)})
    stop = Event()

    def make(attempt: PointRun) -> Outcome | None:
        with _named(attempt):
            try:
                return _logged(attempt, run_apart(run_point, lane_site, (attempt.job,), stop))
            except DiedError as error:
                return _logged(attempt, error)

    return run_in_threads(attempts, make, lanes, stop)


def _on_pool(attempts: Sequence[PointRun], site: RunContext, at_once: int) -> list[Outcome]:
    """Execute runs on a work pool, the first run alone; a run that fails in planning is not sent."""
    with planning():
        outcomes = [_outcome(attempt, site) for attempt in attempts]
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        if isinstance(outcome, ModelError):
            _logged(attempt, outcome)
    sent = [number for number, outcome in enumerate(outcomes) if not isinstance(outcome, ModelError)]
    for batch in (sent[:1], sent[1:]):

        def end(position: int, fault: PoolError | None, batch: Sequence[int] = batch) -> None:
            number = batch[position]
            if fault is not None and not is_fault(fault):
                with _named(attempts[number]):
                    raise fault
            outcomes[number] = _logged(attempts[number], fault or outcomes[number])

        orders = [_order(attempts[number].job, outcomes[number], site) for number in batch]
        run_on_pool(orders, site, at_once, end)
    return outcomes


def _order(job: PointJob, planned: Outcome, site: RunContext) -> Order:
    assert isinstance(job, Job)  # a work pool runs only recipes
    assert isinstance(planned, SweepSystem)
    assert planned.report is not None
    return Order(job.parameters(site), (planned.report, *planned.embeddings, *planned.scores))


def run_in_threads(attempts: Sequence[Item], make: Callable[[Item], Made], lanes: int, stop: Event) -> list[Made]:
    """Call `make` in threads, at most `lanes` at a time; after an error, no call starts and running calls finish.

    Only this thread receives Ctrl-C and SIGTERM; it then sets `stop`, which also ends running calls.
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
                stop.set()
            raise
        return [finished.result() for finished in runs]
