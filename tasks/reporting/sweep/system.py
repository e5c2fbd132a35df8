"""A system of a sweep: a configuration or a method, with its artifacts.

A grid is made of them before a command starts its Prefect server, so nothing here imports Prefect.
"""

from __future__ import annotations

from typing import Final

from storage.artifacts.refs import CheckpointRef, EmbeddingsRef, PaceRef, ScoresRef
from storage.record import Record

SYSTEMS: Final = "recipe"
"""The axis of a sweep whose systems have no order."""


class SweepSystem(Record):
    """A configuration or a method of a sweep, and its artifacts."""

    label: str
    """Its name in tables."""
    line: str = ""
    """The line of the chart that it is on; empty if there is only one."""
    place: str = ""
    """Its place on the chart's horizontal axis."""
    published: float | None = None
    """The paper's figure × 100; None where none is printed."""
    faults: tuple[str, ...] = ()
    """Why runs of it left no figure."""
    embeddings: tuple[EmbeddingsRef, ...] = ()
    """Vectors of all sets, one a seed; none where no run left any."""
    scores: tuple[ScoresRef, ...] = ()
    """All figures of its encoders."""
    checkpoints: tuple[CheckpointRef, ...] = ()
    """Its encoders."""
    steps: int = 0
    """Training steps that it took."""
    pace: PaceRef | None = None
    """Measured time of a step."""
    translators: tuple[str, ...] = ()
    """Memories of the translators of its views."""
    notes: tuple[str, ...] = ()
    """Notes on the page."""
