"""The runs of a sweep: one that cannot be trained or scored is reported, and the others go on."""

from __future__ import annotations

import contextvars
import logging
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from flows.pipeline import Run, run
from flows.pool import Job, deployment_of, run_on_pool
from models.errors import InterruptedRunError, ModelError
from models.translation.errors import TranslationStoppedError
from tasks.site import Site
from tasks.stage.deployed import FailedRunError, PoolError, require_deployments
from tasks.stage.lanes import run_apart
from tasks.stage.machine import cores
from tasks.stage.spread import ErrandError, errand, spread
from tasks.stage.watch import is_planning, planning, watchers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tasks.stage.spread import Errand

logger = logging.getLogger(__name__)

Of = TypeVar("Of")
Made = TypeVar("Made")

_ENDING = (InterruptedRunError, TranslationStoppedError, PoolError, ErrandError)  # whatever the point, none can go on


@dataclass(frozen=True)
class Attempt:
    """A run that is wanted.

    Attributes:
        name: what people call it: its point, and its seed.
        job: what is run.
    """

    name: str
    job: Job


def is_fault(error: BaseException) -> bool:
    """Whether an error is of the point itself, such as a training that diverged, and not of the machines or a stop."""
    if isinstance(error, FailedRunError):
        return error.kind in {kind.__name__ for kind in _own(ModelError)}
    return isinstance(error, ModelError) and not isinstance(error, _ENDING)


def _own(kind: type[ModelError]) -> Iterator[type[ModelError]]:
    """The kinds of errors that are a point's own; a worker names them without their module."""
    if not issubclass(kind, _ENDING):
        yield kind
        for narrower in kind.__subclasses__():
            yield from _own(narrower)


def attempted(attempt: Attempt, way: Callable[[Job], Made]) -> Made | ModelError:
    """What a way makes of a run, or why it left nothing.

    Raises:
        Exception: whatever ended it that is no fault of its own; the log names the point.
    """
    try:
        made = way(attempt.job)
    except Exception as error:
        if isinstance(error, ModelError) and is_fault(error):
            _tell(attempt, error)
            return error
        logger.error("%s: %s", attempt.name, error)  # noqa: TRY400 - who catches it shows the rest
        raise
    for watcher in () if is_planning() else watchers():
        watcher.tells(f"{attempt.name}: done")
    return made


def _tell(attempt: Attempt, error: ModelError) -> None:
    if not is_planning():  # the run that follows says it
        logger.warning("%s is left without a figure: %s", attempt.name, error)


def run_here(attempts: Sequence[Attempt], site: Site, lanes: int) -> list[Run | ModelError]:
    """In this process, on the workers of Dask or Ray, or some at a time, each in a process of its own."""
    first = attempted(attempts[0], lambda job: run(job.config, site))  # alone, since it makes what the others share
    others = attempts[1:]
    if site.runner != "threads":
        sent = spread(site, [_errand_of(each) for each in others], is_fault)
        for number, error in sent.items():
            _tell(others[number], error)
        rest = [
            sent[number] if number in sent else attempted(each, lambda job: run(job.config, site))
            for number, each in enumerate(others)
        ]
    elif lanes == 1 or is_planning():
        rest = [attempted(each, lambda job: run(job.config, site)) for each in others]
    else:
        faults = _run_apart(others, site, lanes)
        # What is there is found by going the usual way.
        rest = [fault or run(each.job.config, site) for each, fault in zip(others, faults, strict=True)]
    return [first, *rest]


def _run_apart(attempts: Sequence[Attempt], site: Site, lanes: int) -> list[ModelError | None]:
    """Run each in a process of its own, some at a time; what ended those that left nothing."""
    share = site.model_copy(update={"threads": site.threads or max(1, cores() // lanes)})
    off = Event()

    def way(attempt: Attempt) -> ModelError | None:
        return attempted(attempt, lambda _: run_apart(_errand_of(attempt), share, off))

    return _side_by_side(attempts, way, lanes, off)


def _errand_of(attempt: Attempt) -> Errand:
    return run_point.errand(attempt.name, recipe=attempt.job.recipe, overrides=attempt.job.overrides)


@errand
def run_point(site: Site, recipe: str, overrides: dict[str, Any]) -> None:
    """Run a point to its report."""
    run(Job.of(recipe, overrides).config, site)


def run_there(attempts: Sequence[Attempt], site: Site, lanes: int | None) -> list[Run | ModelError]:
    """On a pool, each as a run of its recipe's deployment; one that cannot even be planned is not sent.

    Raises:
        PoolError: the server lacks a deployment of these, before anything is sent.
    """
    with planning():
        outcomes = [attempted(attempt, lambda job: run(job.config, site)) for attempt in attempts]
    plans = {number: plan for number, plan in enumerate(outcomes) if isinstance(plan, Run)}
    for number, outcome in enumerate(outcomes):
        if not isinstance(outcome, Run):
            _tell(attempts[number], outcome)
    if plans and not is_planning():
        require_deployments(sorted({deployment_of(attempts[number].job) for number in plans}))
    off = Event()

    def go(number: int) -> Run | ModelError:
        return attempted(attempts[number], lambda job: run_on_pool(job, plans[number], site, off))

    first, others = list(plans)[:1], list(plans)[1:]
    made = [*map(go, first), *_side_by_side(others, go, lanes or len(attempts), off)]
    for number, outcome in zip(plans, made, strict=True):
        outcomes[number] = outcome
    return outcomes


def _side_by_side(attempts: Sequence[Of], way: Callable[[Of], Made], lanes: int, off: Event) -> list[Made]:
    """What a way makes of each, in their order; after an error none is begun, and what is under way ends.

    Ctrl-C and SIGTERM, which only this thread gets, set `off`, which stops that too.
    """
    if lanes == 1:
        return [way(attempt) for attempt in attempts]
    with ThreadPoolExecutor(lanes) as pool:
        try:
            # Each with a copy of this flow run's context, or its tasks would belong to no run.
            runs = [pool.submit(contextvars.copy_context().run, way, attempt) for attempt in attempts]
            for finished in as_completed(runs):
                finished.result()  # the first error, whichever run has it
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):
                off.set()
            raise
        return [finished.result() for finished in runs]
