"""Settings of which there are several kinds (objectives, transforms, rewritings): `name` says which one it is."""

from __future__ import annotations


def named(value: object) -> object:
    """A bare name as the section that takes that kind's defaults; to be used as a `BeforeValidator`."""
    return {"name": value} if isinstance(value, str) else value
