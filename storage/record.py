"""The base class of pydantic models, also of all settings in `models`; fields outside keys; sections by name."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen model that refuses unknown fields; a field's docstring is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class NotInKey:
    """Mark a field that cannot change the result, such as a path or a device: `location: Annotated[str, NotInKey]`."""


def named(value: object) -> object:
    """Convert a kind's bare name to its default settings; a `BeforeValidator` of sections selected by `name`."""
    return {"name": value} if isinstance(value, str) else value
