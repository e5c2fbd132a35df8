"""What the settings of every objective have in common."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


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


class NestedSettings(ObjectiveSettings):
    """Settings of an objective that can supervise the first dimensions of a vector beside all of them."""

    dims: tuple[Annotated[int, Field(ge=2)], ...] = ()
    """Deviation: the loss is summed over the whole vectors and their first d dimensions for each d given here, so that
    vectors may be cut there (Kusupati et al., 2022); () supervises the whole alone, as published."""

    @model_validator(mode="after")
    def _are_of_one_space(self) -> Self:
        if len(set(self.dims)) < len(self.dims):
            raise ValueError(f"dims {list(self.dims)}: expected each number of dimensions once")
        queue: int = getattr(self, "queue", 0)
        vectors: bool = getattr(self, "compares_vectors", False)
        if self.dims and (queue or vectors):
            raise ValueError(
                f"dims {list(self.dims)} with a queue, or with a teacher's vectors: those have no first dimensions "
                "that belong to the encoder's; set `queue` to 0 and compare similarities, or leave `dims` out"
            )
        return self
