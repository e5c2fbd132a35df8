"""Who is told of stages as they run, and planning, which only asks which stages there would be.

Listeners belong to this process; a worker has none, its runs are watched in the Prefect UI.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.runtime.progress import Progress
    from storage.artifacts.refs import ArtifactRef


@dataclass(frozen=True)
class StageRun:
    """A stage of a run, and the artifact that it makes or finds made."""

    stage: str
    ref: ArtifactRef


class ProgressListener(Protocol):
    """What is told of a run. Steps may lie inside others: a shard of translations inside its views."""

    def begins(self, step: StageRun) -> None:
        """A stage is called."""

    def makes(self, step: StageRun) -> None:
        """Its artifact is not there or not whole, so it computes."""

    def advances(self, progress: Progress) -> None:
        """The innermost stage of the thread has advanced."""

    def ends(self, step: StageRun) -> None:
        """Its artifact is there."""

    def fails(self, step: StageRun) -> None:
        """It ended without one; the run may go on."""

    def tells(self, text: str) -> None:
        """Something of several stages: what they compute in, or that a point of a sweep is done."""


logger = logging.getLogger(__name__)

_listeners: list[ProgressListener] = []
_plans: list[list[StageRun]] = []


@contextmanager
def listening(listener: ProgressListener) -> Iterator[None]:
    """Tell a listener of every stage that this process runs meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def listeners() -> Sequence[ProgressListener]:
    """Who is told now."""
    return tuple(_listeners)


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
    for listener in listeners():
        listener.tells(text)


def warn(message: str, *args: object) -> None:
    """Log a warning of a run; a dry run logs nothing, since the run that follows warns of the same."""
    if not _plans:
        logger.warning(message, *args)
