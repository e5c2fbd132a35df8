"""Settings of objective `toy`."""

from __future__ import annotations

from typing import ClassVar, Literal

from bsl.models.objectives.settings import VectorSettings


class ToyConfig(VectorSettings):
    """The cosine is to be what the pair's class says."""

    title: ClassVar[str] = "the toy"
    citation: ClassVar[str] = "Nobody, 2026. A toy."
    objective = "toy:Toy"
    needs = frozenset({"label"})

    name: Literal["toy"] = "toy"
    cosines: tuple[float, float, float] = (1.0, 0.5, 0.0)
    """What entailed, neutral and contradicted pairs are to have."""
