"""Labelled pairs of sentences, by the ids that their sentences have in the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from pydantic import BaseModel, ConfigDict

from models.corpus.normalize import normalize, sentence_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTAILMENT: Final = 0
"""Label of a hypothesis that follows from its premise; 1 is neutral, 2 contradiction (SNLI, MultiNLI)."""

COLUMNS: Final = ("premise_id", "hypothesis_id", "label")


class NliStatistics(BaseModel):
    """What became of the labelled pairs that were read: `read = kept + outside + duplicates`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    read: int
    """Pairs with a label."""
    outside: int
    """Left out because the corpus lacks one of the two sentences: too short, too long or beyond its limit."""
    duplicates: int
    """Left out because the same pair with the same label came before."""
    kept: int
    """Rows of the artifact."""


def build_nli(frames: Iterable[pl.DataFrame], corpus: pl.LazyFrame) -> tuple[pl.DataFrame, NliStatistics]:
    """Labelled pairs, each once, whose two sentences are in the corpus.

    A pair that annotators labelled differently in two places keeps both labels.

    Args:
        frames: premise, hypothesis (raw texts), label (Int8).
        corpus: sentence_id of the sentences that there are.

    Returns:
        premise_id, hypothesis_id, label, sorted by all three: pairs of one premise stand together; and the counts.
    """
    empty = pl.DataFrame(schema={"premise_id": pl.UInt64, "hypothesis_id": pl.UInt64, "label": pl.Int8})
    pairs = pl.concat([empty, *(_identified(frame) for frame in frames)])
    known = corpus.select("sentence_id").collect()["sentence_id"].implode()
    inside = pairs.filter(pl.col("premise_id").is_in(known), pl.col("hypothesis_id").is_in(known))
    kept = inside.unique(COLUMNS).sort(COLUMNS)
    statistics = NliStatistics(
        read=pairs.height,
        outside=pairs.height - inside.height,
        duplicates=inside.height - kept.height,
        kept=kept.height,
    )
    return kept, statistics


def _identified(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        sentence_ids(normalize(pl.col("premise"))).alias("premise_id"),
        sentence_ids(normalize(pl.col("hypothesis"))).alias("hypothesis_id"),
        "label",
    )
