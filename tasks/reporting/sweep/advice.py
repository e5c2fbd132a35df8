"""Advice on the configuration to use for the user's text, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bsl.models.evaluation.signature import with_sign
from bsl.tasks.rendering.numbers import p_value, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from bsl.models.evaluation.sweep import Choice


def advice(figures: pl.DataFrame, choice: Choice, where: str) -> str:
    """Return which system to use, and how certain its gain is.

    Args:
        figures: Rows of the table `sweep` of the deciding figure, compared with the original encoder, its first row.
        choice: The best system.
        where: What decides: `your text` or `your labels`.
    """
    rows = {row["label"]: row for row in figures.drop_nulls("mean").iter_rows(named=True)}
    start, best = next(iter(rows)), choice.best
    if len(rows) == 1:
        return f"Keep the {start}: no other point has figures."
    if best == start:
        return f"Keep the {start}: no point that may be chosen is higher than its {_mean(rows[start])} on {where}."
    row = rows[best]
    gain = f"{_mean(row)} compared with {_mean(rows[start])}, {_difference(row)}, p {p_value(row['p_value'])}"
    if row["verdict"] == "above":
        return f"Use {best}: {gain} on {where}."
    return f"Keep the {start}: no point is significantly above it on {where} (highest: {best}, {gain})."


def forgetting_notes(choice: Choice, allowed: float) -> Iterator[str]:
    """Yield a note for each system that loses more on a general set than allowed."""
    for label, loss in choice.forgets.items():
        yield (
            f"{label} loses {-100 * loss:.1f} points on a general set, more than the allowed {100 * allowed:g}, so it "
            "is not advised: use it for this text only."
        )


def _mean(row: Mapping[str, Any]) -> str:
    return spread(row["mean"], row["sd"])


def _difference(row: Mapping[str, Any]) -> str:
    return with_sign(row["difference"], row["difference_low"], row["difference_high"])
