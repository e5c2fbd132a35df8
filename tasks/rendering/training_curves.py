"""Curves of a training, folded under a line with first value, last value and a word whether it is good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.tasks.rendering import charts
from bsl.tasks.rendering.blocks import Charts, Folded, Prose

if TYPE_CHECKING:
    import polars as pl

_MEAN_OF: Final = 5  # values at each end of the loss, which varies between steps
_GOOD, _FAIR = 0.9, 0.5  # share of the start's spread or effective rank that is left


_QUANTITIES: Final = (
    ("loss", "loss", "lower"),
    ("dev_spearman", "dev Spearman", "higher"),
    ("effective_rank", "effective rank", "kept"),
    ("std", "spread of vectors", "kept"),
    ("alignment", "alignment of pairs", "lower"),
    ("uniformity", "uniformity", "lower"),
)
"""Column of the log, its name, and whether it should fall, should rise, or should not fall much."""
_MEANING: Final = (
    "A low effective rank or spread means that all vectors become alike. Alignment is the distance of the two texts of "
    "a pair, uniformity falls as vectors spread over the sphere; training on labels often gives up some uniformity."
)


def folded_curves(log: pl.DataFrame) -> list[Folded]:
    """Return the charts of a training log, folded; no block without a logged quantity."""
    said = [line for quantity in _QUANTITIES if (line := _said(log, *quantity))]
    curves = charts.training_charts({"training": log})
    return [Folded(f"Curves: {', '.join(said)}", [Charts(curves), Prose(_MEANING, note=True)])] if curves else []


def _said(log: pl.DataFrame, column: str, name: str, wanted: str) -> str:
    """Return `loss 0.18 → 0.15 (good)`; empty with fewer than two values."""
    values = log[column].drop_nulls().to_numpy()
    if len(values) <= 1:
        return ""
    ends = min(_MEAN_OF, len(values) // 2) if column == "loss" else 1
    first, last = float(values[:ends].mean()), float(values[-ends:].mean())
    return f"{name} {first:.3g} → {last:.3g} ({_word(first, last, wanted)})"


def _word(first: float, last: float, wanted: str) -> str:
    if wanted == "kept":
        return "good" if last >= _GOOD * first else "fair" if last >= _FAIR * first else "bad"
    falls = last <= first
    return "good" if falls == (wanted == "lower") or last == first else "worse"
