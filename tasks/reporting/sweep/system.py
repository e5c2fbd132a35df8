"""A system of a sweep: a configuration or a method, with its artifacts.

A command builds a grid of systems before it starts its Prefect server, so this module does not import Prefect.
"""

from __future__ import annotations

from typing import Final

from storage.artifacts.refs import CheckpointRef, EmbeddingsRef, PaceRef, ReportRef, ScoresRef
from storage.record import Record

SYSTEMS: Final = "recipe"
"""Axis of a sweep if its systems have no order."""


class SweepSystem(Record):
    """A configuration or a method of a sweep, and its artifacts."""

    label: str
    """Its name in tables."""
    line: str = ""
    """Its line on the chart; empty if there is only one."""
    place: str = ""
    """Its position on the chart's horizontal axis."""
    published: float | None = None
    """The paper's figure × 100; None if none is printed."""
    faults: tuple[str, ...] = ()
    """Why some of its runs have no figures."""
    report: ReportRef | None = None
    """Report of a single run of a recipe."""
    embeddings: tuple[EmbeddingsRef, ...] = ()
    """Vectors of all sets, one artifact per seed; empty if no run finished."""
    scores: tuple[ScoresRef, ...] = ()
    """All figures of its encoders."""
    checkpoints: tuple[CheckpointRef, ...] = ()
    """Its encoders."""
    steps: int = 0
    """Number of training steps."""
    pace: PaceRef | None = None
    """Measured time of a step."""
    translators: tuple[str, ...] = ()
    """Memories of the translators of its views."""
    notes: tuple[str, ...] = ()
    """Notes on the page."""
