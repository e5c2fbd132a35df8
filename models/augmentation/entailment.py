"""The entailed hypothesis as a view of its premise (BSL, section 4.4: NLI_entail)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.shuffle import scattered
from models.text.nli import ENTAILMENT

if TYPE_CHECKING:
    from models.augmentation.rewritings import EntailView


def entailed_views(corpus: pl.LazyFrame, nli: pl.LazyFrame, view: EntailView) -> pl.LazyFrame:
    """Hypotheses that annotators call entailed, under the ids of their premises.

    Where a premise has several, the seed ranks them by their ids alone: the same ones come first whatever the order of
    the rows, and a grown corpus moves a view only where a premise gained a hypothesis.

    Args:
        corpus: sentence_id, text.
        nli: premise_id, hypothesis_id, label.
        view: How many hypotheses of a premise are taken, and the seed.

    Returns:
        sentence_id, method (`entail`, `entail-2`, …), text; a premise without entailed hypothesis has no row.
    """
    drawn = scattered(pl.col("hypothesis_id"), view.seed)
    ranked = (
        nli.filter(pl.col("label") == ENTAILMENT)
        .with_columns(rank=drawn.rank("ordinal").over("premise_id"))
        .filter(pl.col("rank") <= view.hypotheses)
    )
    methods = dict(enumerate(view.methods, start=1))
    texts = corpus.select(pl.col("sentence_id").alias("hypothesis_id"), "text")
    return ranked.join(texts, on="hypothesis_id").select(
        pl.col("premise_id").alias("sentence_id"),
        pl.col("rank").replace_strict(methods, return_dtype=pl.String).alias("method"),
        "text",
    )
