"""Tables of an adaptation's evidence: scores before and after, and the general score of each merging share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.evaluation.signature import with_sign
from bsl.models.evaluation.uses import USES
from bsl.tasks.rendering.blocks import Prose, Table
from bsl.tasks.rendering.numbers import p_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.tasks.rendering.blocks import Block

MRR: Final = "MRR (mean reciprocal rank) is the mean of 1 / rank of the correct answer."
_ANSWERS: Final = {
    "neighbour": "the next sentence of the document",
    "title": "the title of the document",
    "round trip": "the source sentence of a round trip through another language",
    "crop": "the other half of the sentence",
}
_ROLES: Final = {"decides": "decides", "vetoes": "can veto", "reported": "reported only"}


def answer_blocks(proof: pl.DataFrame, draws: int | None = None) -> list[Block]:
    """Return the answer for each use of the encoder, and the question it answers; nothing without an answer.

    `proof` is the table of that name; the number of draws limits p.
    """
    rows = answer_rows(proof, draws)
    if not rows:
        return []
    table = Table.of("Before → after × 100, with the 95 % interval of the difference", rows)
    uses = [USES[use] for use in proof["use"].drop_nulls()]
    return [table, *(Prose(f"{use.title.capitalize()}: {use.question}", note=True) for use in uses)]


def answer_rows(proof: pl.DataFrame, draws: int | None = None) -> list[dict[str, str]]:
    """Return a row per use of the encoder: better, same or worse, before → after × 100, and how it is measured."""
    return [
        {
            "use": USES[row["use"]].title,
            "answer": answer_of(row),
            "before → after": f"{100 * row['before']:.1f} → {100 * row['after']:.1f}",
            "difference": with_sign(row["difference"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"], draws),
            "role": _ROLES[row["role"]],
            "n": f"{row['n']:,}",
            "measure": USES[row["use"]].measure + (f" ({answer})" if (answer := _ANSWERS.get(row["evidence"])) else ""),
        }
        for row in proof.filter(pl.col("use").is_not_null()).iter_rows(named=True)
    ]


def answer_of(row: Mapping[str, Any]) -> str:
    """Return whether a row of the table `proof` is better or worse; `same` if its interval includes 0."""
    return "better" if row["ci_low"] > 0 else "worse" if row["ci_high"] < 0 else "same"


def proof_rows(proof: pl.DataFrame, draws: int | None = None) -> list[dict[str, str]]:
    """Return a row per piece of evidence, × 100; columns that may not fit the narrow page of the UI come last."""
    return [
        {
            "evidence": row["evidence"],
            "difference": with_sign(row["difference"], row["ci_low"], row["ci_high"]),
            "p": p_value(row["p_value"], draws),
            "before": f"{100 * row['before']:.1f}",
            "after": f"{100 * row['after']:.1f}",
            "metric": row["metric"],
            "role": _ROLES[row["role"]],
            "n": f"{row['n']:,}",
            "correct answer": _ANSWERS.get(row["evidence"], ""),
        }
        for row in proof.iter_rows(named=True)
    ]


def share_tables(weighing: pl.DataFrame) -> list[Table]:
    """Return the general score of each share of the trained weights; nothing if no share was scored."""
    rows = [{"share": f"{share:g}", "general dev set": f"{100 * value:.1f}"} for share, value in weighing.iter_rows()]
    return [Table.of("General dev set × 100 by share", rows)] if rows else []
