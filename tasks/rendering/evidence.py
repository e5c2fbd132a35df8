"""Tables of an adaptation's evidence: scores before and after, and the general score of each merging share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.evaluation.signature import signed
from tasks.rendering.numbers import p_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

MRR: Final = "MRR (mean reciprocal rank) is the mean of 1 / rank of the correct answer."
_ANSWERS: Final = {
    "neighbour": "the next sentence of the document",
    "title": "the title of the document",
    "round trip": "the source sentence of a round trip through another language",
    "crop": "the other half of the sentence",
}
_ROLES: Final = {
    "counts": "decides",
    "guard": "can veto",
    "shown": "reported only",
}


def proof_rows(proof: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per piece of evidence, × 100; columns that may not fit the narrow page of the UI come last."""
    return [
        {
            "evidence": row["evidence"],
            "difference": signed(row["difference"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"]),
            "before": f"{100 * row['before']:.1f}",
            "after": f"{100 * row['after']:.1f}",
            "metric": row["metric"],
            "role": _ROLES[row["role"]],
            "n": f"{row['n']:,}",
            "correct answer": _ANSWERS.get(row["evidence"], ""),
        }
        for row in proof.iter_rows(named=True)
    ]


def weighed(scores: Iterable[tuple[float, float]]) -> list[dict[str, str]]:
    """Return a row per share of the trained weights with its score on the general dev set."""
    return [{"share": f"{share:g}", "general dev set": f"{100 * value:.1f}"} for share, value in scores]
