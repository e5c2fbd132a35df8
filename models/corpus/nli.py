"""NLI pairs: premise, hypothesis and label, by the sentence ids of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.normalize import normalize, sentence_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTAILMENT: Final = 0
"""Label of a hypothesis that follows from its premise; 1 is neutral, 2 contradiction (SNLI, MultiNLI)."""

COLUMNS: Final = ("premise_id", "hypothesis_id", "label")


def build_nli(frames: Iterable[pl.DataFrame], corpus: pl.LazyFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the distinct labelled pairs whose two sentences are in the corpus.

    A pair with different labels in two places has a row for each label.

    Args:
        frames: Columns premise, hypothesis (raw texts), label (Int8).
        corpus: Column sentence_id, the ids of the corpus.

    Returns:
        premise_id, hypothesis_id, label, sorted by all three, so that pairs of one premise are adjacent; and the
        counts.
    """
    empty = pl.DataFrame(schema={"premise_id": pl.UInt64, "hypothesis_id": pl.UInt64, "label": pl.Int8})
    pairs = pl.concat([empty, *(_identified(frame) for frame in frames)])
    known = corpus.select("sentence_id").collect()["sentence_id"].implode()
    inside = pairs.filter(pl.col("premise_id").is_in(known), pl.col("hypothesis_id").is_in(known))
    unique = inside.unique(COLUMNS).sort(COLUMNS)
    return unique, {
        "read": pairs.height,
        "outside": pairs.height - inside.height,
        "duplicates": inside.height - unique.height,
        "kept": unique.height,
    }


def _identified(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        sentence_ids(normalize(pl.col("premise"))).alias("premise_id"),
        sentence_ids(normalize(pl.col("hypothesis"))).alias("hypothesis_id"),
        "label",
    )
