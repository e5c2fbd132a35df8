"""What a study's tables and plot call a configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Point(BaseModel):
    """One configuration of a study."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    label: str
    """What tables call it."""
    line: str
    """The line of the plot that it is on; empty if there is only one."""
    place: str
    """Its place on the plot's horizontal axis."""
    published: float | None = None
    """The paper's figure × 100 at this point; None where none is printed."""
    faults: tuple[str, ...] = ()
    """Why runs of it left no figure."""
