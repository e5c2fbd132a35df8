"""A figure as a row of the table `scores`, before the model, the seed and the signature stand beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WHOLE: Final = "all"
"""Subset of figures over a whole set."""


@dataclass(frozen=True)
class ScoreRow:
    """One figure, with its meaning and its uncertainty; value and interval in [0, 1], of correlations in [-1, 1]."""

    dataset: str
    subset: str
    split: str
    metric: str
    protocol: str
    value: float
    n: int
    ci_low: float
    ci_high: float
