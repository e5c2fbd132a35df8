"""Settings of objective `toy`."""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict


class ToyConfig(BaseModel):
    """The cosine is to be what the pair's class says."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    title: ClassVar[str] = "the toy"
    citation: ClassVar[str] = "Nobody, 2026. A toy."

    name: Literal["toy"] = "toy"
    cosines: tuple[float, float, float] = (1.0, 0.5, 0.0)
    """What entailed, neutral and contradicted pairs are to have."""
