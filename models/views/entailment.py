"""The entailed hypothesis as a view of its premise (BSL, section 4.4: NLI_entail)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.corpus.nli import ENTAILMENT
from models.runtime.partitions import Partitions, in_range
from models.runtime.seeded_order import scattered
from models.views.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from models.views.config import EntailView

_CHOSEN: Final = pl.Schema({"sentence_id": pl.UInt64, "method": pl.String, "hypothesis_id": pl.UInt64})


def entailed_views(
    corpus: pl.LazyFrame, nli: pl.LazyFrame, view: EntailView, bits: int, scratch: Path
) -> Iterator[pl.DataFrame]:
    """Return entailed hypotheses as views of their premises.

    If a premise has several, the seed ranks them by their ids alone. So the order of the rows does not matter, and a
    larger corpus changes a view only where a premise has a new hypothesis.

    Args:
        corpus: sentence_id, text.
        nli: premise_id, hypothesis_id, label.
        view: Settings with the number of hypotheses per premise, and the seed.
        bits: Binary logarithm of the number of id ranges (see `models.runtime.partitions`).
        scratch: An empty folder for data that does not fit into memory; the caller removes it.

    Yields:
        Frames of sentence_id, method (`entail`, `entail-2`, …), text, sorted by the first two; a premise without
        entailed hypothesis has no row.
    """
    chosen = Partitions(scratch / "chosen", _CHOSEN, "hypothesis_id", bits=bits)
    for number in range(1 << bits):
        chosen.add(_drawn(in_range(nli, number, bits, "premise_id"), view).collect())
    views = Partitions(scratch / "views", VIEWS, bits=bits, tidy=lambda rows: rows.sort("sentence_id", "method"))
    for number, rows in enumerate(chosen):
        texts = in_range(corpus, number, bits).select(pl.col("sentence_id").alias("hypothesis_id"), "text")
        views.add(rows.lazy().join(texts, on="hypothesis_id").select(*VIEWS).collect())
    return iter(views)


def _drawn(nli: pl.LazyFrame, view: EntailView) -> pl.LazyFrame:
    drawn = scattered(pl.col("hypothesis_id"), view.seed)
    ranked = (
        nli.filter(pl.col("label") == ENTAILMENT)
        .with_columns(rank=drawn.rank("ordinal").over("premise_id"))
        .filter(pl.col("rank") <= view.hypotheses)
    )
    methods = dict(enumerate(view.methods, start=1))
    return ranked.select(
        pl.col("premise_id").alias("sentence_id"),
        pl.col("rank").replace_strict(methods, return_dtype=pl.String).alias("method"),
        "hypothesis_id",
    )
