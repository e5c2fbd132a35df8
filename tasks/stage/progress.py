"""Who is told of stages as they run, and planning, which only asks which stages there would be.

Listeners belong to this process; a worker has none, its runs are watched in the Prefect UI.
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
    """A stage of a run, and the artifact that it makes or finds made."""

    stage: str
    ref: ArtifactRef


Event: TypeAlias = Literal["begins", "makes", "advances", "ends", "fails", "tells"]
"""What happens to a stage, each with the `StageRun`; stages may lie inside others: a shard inside its views.

`begins`: it is called. `makes`: its artifact is not there or not whole, so it computes. `ends`: the artifact is there.
`fails`: it ended without one; the run may go on. `advances`: the innermost stage of the thread is so far (`Progress`).
`tells`: a line about several stages: the precision, or that a point of a sweep is done.
"""
Listener: TypeAlias = Callable[[Event, Any], None]


logger = logging.getLogger(__name__)

_listeners: list[Listener] = []
_plans: list[list[StageRun]] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener of every stage that this process runs meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(event: Event, value: object) -> None:
    """Tell all listeners of an event."""
    for listener in tuple(_listeners):
        listener(event, value)


@contextmanager
def planning() -> Iterator[list[StageRun]]:
    """Run no stage: each call is noted, and gives the reference that it would give; keys need no artifact."""
    _plans.append([])
    try:
        yield _plans[-1]
    finally:
        _plans.pop()


def is_planning() -> bool:
    """Whether stages are noted instead of run."""
    return bool(_plans)


def planned(step: StageRun) -> bool:
    """Whether a step was noted instead of run."""
    for plan in _plans:
        plan.append(step)
    return bool(_plans)


def announce(text: str) -> None:
    """Log something of several stages, and tell listeners; a dry run does neither."""
    if _plans:
        return
    logger.info(text)
    tell("tells", text)


def warn(message: str, *args: object) -> None:
    """Log a warning of a run; a dry run logs nothing, since the run that follows warns of the same."""
    if not _plans:
        logger.warning(message, *args)
