"""Arguments of a stage that belong together, as one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Mapping


class StageInputs(BaseModel):
    """A group of stage arguments. Key and provenance have its fields as if each were an argument of the stage."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def ungrouped(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return stage arguments with the fields of each group in place of the group.

    Args:
        arguments: name → argument of a stage.
    """
    flat: dict[str, object] = {}
    for name, value in arguments.items():
        if isinstance(value, StageInputs):
            flat |= {field: getattr(value, field) for field in type(value).model_fields}
        else:
            flat[name] = value
    return flat
