"""Report stage events to listeners, and plan a run: record the stages without running them.

Listeners belong to this process. A worker has none; its runs are visible in the Prefect UI.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.artifacts.refs import ArtifactRef


@dataclass(frozen=True)
class StageRun:
    """A stage of a run, and the artifact that it makes or finds in the cache."""

    stage: str
    ref: ArtifactRef


Event: TypeAlias = Literal["begins", "makes", "advances", "ends", "fails", "tells"]
"""Events of stages, each with the `StageRun`; stages may be nested: a shard inside its views.

`begins`: the stage is called. `makes`: its artifact is missing or damaged, so it computes. `ends`: the artifact exists.
`fails`: it ended without an artifact; the run may continue. `advances`: progress of the thread's innermost stage
(`Progress`). `tells`: a message about several stages, such as the precision, or a finished point of a sweep.
"""
Listener: TypeAlias = Callable[[Event, Any], None]


logger = logging.getLogger(__name__)

_listeners: list[Listener] = []
_plans: list[list[StageRun]] = []


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
def planning() -> Iterator[list[StageRun]]:
    """Record stage calls instead of running them; each returns its reference, which needs no artifact."""
    _plans.append([])
    try:
        yield _plans[-1]
    finally:
        _plans.pop()


def is_planning() -> bool:
    """Return whether stages are recorded instead of run."""
    return bool(_plans)


def planned(step: StageRun) -> bool:
    """Record a stage run in all open plans; return whether there are any."""
    for plan in _plans:
        plan.append(step)
    return bool(_plans)


def announce(text: str) -> None:
    """Log a message about several stages and send it to listeners; a dry run does neither."""
    if _plans:
        return
    logger.info(text)
    notify("tells", text)


def warn(message: str, *args: object) -> None:
    """Log a warning of a run; a dry run logs nothing, because the run that follows repeats the warning."""
    if not _plans:
        logger.warning(message, *args)
