"""Settings with several kinds (objectives, transforms, rewritings), selected by `name`."""

from __future__ import annotations


def named(value: object) -> object:
    """Convert a bare name to a section with that kind's defaults; for use as a `BeforeValidator`."""
    return {"name": value} if isinstance(value, str) else value
