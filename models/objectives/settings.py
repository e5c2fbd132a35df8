"""What the settings of every objective have in common."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class ObjectiveSettings(BaseModel):
    """Settings of one objective, and what reports say of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    title: ClassVar[str]
    """What reports call it."""
    citation: ClassVar[str]
    """The work that it is from."""

    name: str

    @property
    def label(self) -> str:
        """What tables call it under these settings."""
        return self.title
