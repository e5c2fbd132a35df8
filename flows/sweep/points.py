"""The runs of a sweep: one that cannot be trained or scored is reported, and the others go on.

A run is made in this process, in processes of this machine, on a Dask cluster or on a work pool. Wherever it was made,
this process then runs the same configuration and finds its artifacts, so all ways give the same result.
"""

from __future__ import annotations

import contextvars
import logging
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from flows.pipeline import Run, run
from flows.pool import FailedRunError, Job, Order, PoolError, run_on_pool
from flows.run_context import settled
from models.errors import InterruptedRunError, ModelError, TrainingError, TranslationStoppedError
from models.evaluation.verdict import STOPPED
from tasks.stage.device import cores
from tasks.stage.lanes import DiedError, StoppedError, run_apart
from tasks.stage.progress import announce, is_planning, planning, warn
from tasks.stage.shards import ClusterError, on_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flows.config import PipelineConfig
    from tasks.stage.run_context import RunContext

Of = TypeVar("Of")
Made = TypeVar("Made")
Result = TypeVar("Result", bound="Run | ModelError | None")

logger = logging.getLogger(__name__)

_ENDING = (InterruptedRunError, TranslationStoppedError, PoolError, ClusterError, StoppedError)  # no point can go on
_ON_POOL = 256  # runs that wait or work at a time


@dataclass(frozen=True)
class PointRun:
    """A run of a sweep.

    Attributes:
        name: its point, and its seed.
        job: what is run.
    """

    name: str
    job: Job


def runs_of(label: str, recipe: str, config: PipelineConfig, seeds: int, site: RunContext) -> list[PointRun]:
    """Return a configuration's runs, one per seed.

    Args:
        label: name of the configuration in messages.
        recipe: the recipe behind it.
        config: the configuration; settled here, so that workers with other processors make what this one expects.
        seeds: how many, if the configuration draws anything.
        site: the processor whose precision `auto` means.
    """
    runs = settled(config, site).runs(seeds)
    return [PointRun(f"{label}, seed {seed}", Job(recipe, own)) for seed, own in enumerate(runs)]


def is_fault(error: BaseException) -> bool:
    """Whether an error is of the point itself, such as a training that diverged, and not of the machines or a stop."""
    if isinstance(error, FailedRunError):
        return error.kind in {kind.__name__ for kind in _own(ModelError)}
    return isinstance(error, ModelError) and not isinstance(error, _ENDING)


def _own(kind: type[ModelError]) -> Iterator[type[ModelError]]:
    """The kinds of errors that are a point's own; a work pool names them without their module."""
    if not issubclass(kind, _ENDING):
        yield kind
        for narrower in kind.__subclasses__():
            yield from _own(narrower)


def run_points(attempts: Sequence[PointRun], site: RunContext, lanes: int | None = None) -> list[Run | ModelError]:
    """Make all runs of a sweep.

    Args:
        attempts: the runs; the first is made alone, since it makes what the others share.
        site: store and device; on its cluster or on a work pool if it says so.
        lanes: runs at a time, each in a process of this machine; on a pool the most that are sent; None for one here,
            many there.

    Returns:
        Each run, or why it left nothing, in their order.

    Raises:
        Exception: whatever ended a run that is no fault of its own.
    """
    if site.pool:
        return _on_pool(attempts, site, lanes or _ON_POOL)
    first, others = attempts[0], attempts[1:]
    outcomes = [_said(first, _outcome(first, site))]
    faults = _made_elsewhere(others, site, lanes or 1)
    if faults is None:
        return outcomes + [_said(each, _outcome(each, site)) for each in others]
    # What is there is found by the same way.
    return outcomes + [fault or run(each.job.config, site) for each, fault in zip(others, faults, strict=True)]


def without_stopped(
    attempts: Sequence[PointRun], outcomes: Sequence[Run | ModelError], site: RunContext
) -> list[Run | ModelError]:
    """The outcomes, with the reason in place of each run whose training was stopped: its figures are of the start."""
    return [_unless_stopped(each, outcome, site) for each, outcome in zip(attempts, outcomes, strict=True)]


def _unless_stopped(attempt: PointRun, outcome: Run | ModelError, site: RunContext) -> Run | ModelError:
    if isinstance(outcome, ModelError) or is_planning():
        return outcome
    figures = site.open_store().manifest(outcome.report).figures
    if figures.get("verdict") != STOPPED:
        return outcome
    fault = TrainingError(str(figures["reason"]))
    warn("%s is left without a figure: %s", attempt.name, fault)
    return fault


def run_point(site: RunContext, config: PipelineConfig) -> ModelError | None:
    """Run a point to its report, in another process; its own fault is returned.

    Args:
        site: where that process runs.
        config: the point's.

    Raises:
        Exception: whatever ended it that is no fault of its own.
    """
    outcome = _run_or_fault(config, site)
    return outcome if isinstance(outcome, ModelError) else None


def _run_or_fault(config: PipelineConfig, site: RunContext) -> Run | ModelError:
    try:
        return run(config, site)
    except ModelError as error:
        if is_fault(error):
            return error
        raise


def _outcome(attempt: PointRun, site: RunContext) -> Run | ModelError:
    try:
        return _run_or_fault(attempt.job.config, site)
    except Exception as error:
        logger.error("%s: %s", attempt.name, error)  # noqa: TRY400 - who catches it shows the rest
        raise


def _said(attempt: PointRun, outcome: Result) -> Result:
    """Log how a run ended."""
    if isinstance(outcome, ModelError):
        warn("%s is left without a figure: %s", attempt.name, outcome)
    else:
        announce(f"{attempt.name}: done")
    return outcome


def _made_elsewhere(attempts: Sequence[PointRun], site: RunContext, lanes: int) -> list[ModelError | None] | None:
    """Make runs in other processes; what ended those that left nothing, or None where there are no such processes."""
    if is_planning():
        return None
    if site.cluster is not None:
        return list(map(_said, attempts, on_cluster(site, run_point, [(attempt.job.config,) for attempt in attempts])))
    if lanes == 1:
        return None
    share = site.model_copy(update={"threads": site.threads or max(1, cores() // lanes)})
    off = Event()

    def make(attempt: PointRun) -> ModelError | None:
        try:
            fault = run_apart(run_point, share, (attempt.job.config,), off)
        except DiedError as error:
            fault = error
        except Exception as error:
            logger.error("%s: %s", attempt.name, error)  # noqa: TRY400 - who catches it shows the rest
            raise
        return _said(attempt, fault)

    return side_by_side(attempts, make, lanes, off)


def _on_pool(attempts: Sequence[PointRun], site: RunContext, at_once: int) -> list[Run | ModelError]:
    """Send runs to a work pool; one that cannot even be planned is not sent."""
    with planning():
        outcomes = [_outcome(attempt, site) for attempt in attempts]
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        if isinstance(outcome, ModelError):
            _said(attempt, outcome)
    sent = [(number, outcome) for number, outcome in enumerate(outcomes) if isinstance(outcome, Run)]
    for some in (sent[:1], sent[1:]):

        def end(position: int, fault: PoolError | None, some: Sequence[tuple[int, Run]] = some) -> None:
            number, made = some[position]
            if fault is not None and not is_fault(fault):
                raise fault
            outcomes[number] = _said(attempts[number], fault or made)

        orders = [Order(attempts[number].job, plan) for number, plan in some]
        run_on_pool(orders, site, at_once, end)
    return outcomes


def side_by_side(attempts: Sequence[Of], make: Callable[[Of], Made], lanes: int, off: Event) -> list[Made]:
    """Make each in a thread of its own, some at a time; after an error none is begun, and those under way end.

    Ctrl-C and SIGTERM, which only this thread gets, set `off`, which stops those too.
    """
    with ThreadPoolExecutor(lanes) as pool:
        try:
            # Each with a copy of this flow run's context, or its tasks would belong to no run.
            runs = [pool.submit(contextvars.copy_context().run, make, attempt) for attempt in attempts]
            for finished in as_completed(runs):
                finished.result()  # the first error, whichever run has it
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):
                off.set()
            raise
        return [finished.result() for finished in runs]
