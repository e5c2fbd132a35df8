"""A system of a sweep: a configuration or a finished run, with its artifacts.

A command builds a grid of systems before it starts its Prefect server, so this module does not import Prefect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from bsl.storage.artifacts.refs import EmbeddingsRef, ScoresRef
from bsl.storage.record import AddedAs, Record

SYSTEMS: Final = "recipe"
"""Axis of a sweep if its systems have no order."""


class SweepSystem(Record):
    """A configuration of a sweep or a finished run, and its artifacts."""

    removed: ClassVar[Mapping[str, object]] = {"report": None}

    label: str
    line: str = ""
    """Its line on the chart; empty if there is only one."""
    place: str = ""
    """Its position on the chart's horizontal axis."""
    published: float | None = None
    """The paper's figure × 100; None if none is printed."""
    published_as: Annotated[str, AddedAs("")] = ""
    """What that figure is, if it is not of protocol `all`, which the chart shows, such as `mean of sts12-16, wmean`."""
    faults: tuple[str, ...] = ()
    """Why some of its runs have no figures."""
    embeddings: tuple[EmbeddingsRef, ...] = ()
    """Vectors of all sets, one artifact per seed; empty if no run finished."""
    scores: tuple[ScoresRef, ...] = ()
