"""Report stage events to listeners, and plan a run: record the stages without running them.

Listeners belong to this process. A worker has none; its runs are visible in the Prefect UI.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from bsl.storage.artifacts.refs import ArtifactRef


@dataclass(frozen=True)
class StageRun:
    """A stage of a run, and the artifact that it makes or finds in the cache.

    Its settings, as in the manifest, and the artifacts that it is made from are empty outside a dry run.
    """

    stage: str
    ref: ArtifactRef
    config: Mapping[str, JsonValue] = field(default_factory=dict, compare=False, repr=False)
    inputs: tuple[ArtifactRef, ...] = field(default=(), compare=False, repr=False)


Event: TypeAlias = Literal["begins", "makes", "advances", "ends", "fails", "tells"]
"""Events of stages, each with the `StageRun`; stages may be nested: a shard inside its views.

`begins`: the stage is called. `makes`: its artifact is missing or damaged, so it computes. `ends`: the artifact exists.
`fails`: it ended without an artifact; the run may continue. `advances`: progress of the thread's innermost stage
(`Progress`). `tells`: a message about several stages, such as the precision, or a finished point of a sweep.
"""
Listener: TypeAlias = Callable[[Event, Any], None]


logger = logging.getLogger(__name__)

_listeners: list[Listener] = []
_current: ContextVar[StageRun | None] = ContextVar("current_stage", default=None)
_plans: ContextVar[tuple[list[StageRun], ...]] = ContextVar("plans", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a listener on every stage event of this process during the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def notify(event: Event, value: object) -> None:
    """Call all listeners with an event."""
    for listener in tuple(_listeners):
        listener(event, value)


@contextmanager
def running(step: StageRun) -> Iterator[None]:
    """Make a stage run the innermost one of this thread during the block."""
    token = _current.set(step)
    try:
        yield
    finally:
        _current.reset(token)


def current_step() -> StageRun | None:
    """Return the innermost stage running in this thread."""
    return _current.get()


@contextmanager
def planning() -> Iterator[list[StageRun]]:
    """Record the stage calls of this thread instead of running them; each returns its reference without an artifact."""
    plan: list[StageRun] = []
    token = _plans.set((*_plans.get(), plan))
    try:
        yield plan
    finally:
        _plans.reset(token)


def is_planning() -> bool:
    """Return whether stages are recorded instead of run."""
    return bool(_plans.get())


def planned(step: StageRun) -> bool:
    """Record a stage run in all open plans; return whether there are any."""
    for plan in _plans.get():
        plan.append(step)
    return is_planning()


def announce(text: str) -> None:
    """Log a message about several stages and send it to listeners; a dry run does neither."""
    if is_planning():
        return
    logger.info(text)
    notify("tells", text)


def warn(message: str, *args: object) -> None:
    """Log a warning of a run; a dry run logs nothing, because the run that follows repeats the warning."""
    if not is_planning():
        logger.warning(message, *args)
