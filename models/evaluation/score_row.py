"""Rows of the table `scores`: a figure, the figures that pages print, and a difference as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

WHOLE: Final = "all"
"""Subset of figures over a whole set."""
PLACE: Final = ("dataset", "split", "metric", "protocol")
_ONE_A_SET: Final = pl.col("subset").is_in([WHOLE, "mean"]) & ~pl.col("protocol").is_in(["mean", "wmean"])
PRINTED: Final = _ONE_A_SET & ((pl.col("metric") != "pearson") | (pl.col("dataset") == "afs"))
"""The figures that pages print; Pearson is reported beside Spearman on AFS alone."""


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


def signed(value: float | None, low: float | None, high: float | None) -> str:
    """Return `value × 100 [low, high]`, each with its sign; without an interval the value alone, of None nothing."""
    if value is None:
        return ""
    ends = "" if low is None or high is None else f" [{100 * low:+.2f}, {100 * high:+.2f}]"
    return f"{100 * value:+.2f}{ends}"
