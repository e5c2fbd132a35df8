"""Curves of a training, folded under a line with first value, last value and a word whether it is good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bsl.tasks.rendering import charts
from bsl.tasks.rendering.blocks import Charts, Folded, Prose

if TYPE_CHECKING:
    import polars as pl

_MEAN_OF: Final = 5  # values at each end of the loss, which varies between steps
_GOOD, _FAIR = 0.9, 0.5  # share of the start's spread or effective rank that is left


@dataclass(frozen=True)
class _Quantity:
    """A logged quantity: its name, and whether it should fall, should rise, or should not fall much."""

    column: str
    name: str
    wanted: str


_QUANTITIES: Final = (
    _Quantity("loss", "loss", "lower"),
    _Quantity("dev_spearman", "dev Spearman", "higher"),
    _Quantity("effective_rank", "effective rank", "kept"),
    _Quantity("std", "spread of vectors", "kept"),
    _Quantity("alignment", "alignment of pairs", "lower"),
    _Quantity("uniformity", "uniformity", "lower"),
)
_MEANING: Final = (
    "A low effective rank or spread means that all vectors become alike. Alignment is the distance of the two texts of "
    "a pair, uniformity falls as vectors spread over the sphere; training on labels often gives up some uniformity."
)


def folded_curves(log: pl.DataFrame) -> list[Folded]:
    """Return the charts of a training log, folded; no block without a logged quantity."""
    said = [line for quantity in _QUANTITIES if (line := _said(log, quantity))]
    curves = charts.training_charts({"training": log})
    return [Folded(f"Curves: {', '.join(said)}", [Charts(curves), Prose(_MEANING, note=True)])] if curves else []


def _said(log: pl.DataFrame, quantity: _Quantity) -> str:
    """Return `loss 0.18 → 0.15 (good)`; empty with fewer than two values."""
    values = log[quantity.column].drop_nulls().to_numpy()
    if len(values) <= 1:
        return ""
    ends = min(_MEAN_OF, len(values) // 2) if quantity.column == "loss" else 1
    first, last = float(values[:ends].mean()), float(values[-ends:].mean())
    return f"{quantity.name} {first:.3g} → {last:.3g} ({_word(first, last, quantity.wanted)})"


def _word(first: float, last: float, wanted: str) -> str:
    if wanted == "kept":
        return "good" if last >= _GOOD * first else "fair" if last >= _FAIR * first else "bad"
    falls = last <= first
    return "good" if falls == (wanted == "lower") or last == first else "worse"
