"""Views that a source brings: another way of saying each sentence, in a column beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.corpus.normalize import normalize, sentence_ids
from models.views.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable


def given_views(frames: Iterable[pl.DataFrame], corpus: pl.LazyFrame, method: str) -> pl.DataFrame:
    """The views of the corpus's sentences, the first of each sentence.

    Args:
        frames: text, view (raw texts), in the order of the source.
        corpus: sentence_id of the sentences that there are.
        method: Name of the view.

    Returns:
        sentence_id, method, text, sorted by sentence_id; a view without text is left out.
    """
    empty = pl.DataFrame(schema={"sentence_id": pl.UInt64, "text": pl.String})
    rows = pl.concat([empty, *map(_identified, frames)])
    known = corpus.select("sentence_id").collect()["sentence_id"].implode()
    inside = rows.filter(pl.col("sentence_id").is_in(known), pl.col("text") != "")
    first = inside.unique("sentence_id", keep="first", maintain_order=True).sort("sentence_id")
    return first.select("sentence_id", pl.lit(method).alias("method"), "text").cast(VIEWS)


def _identified(frame: pl.DataFrame) -> pl.DataFrame:
    sentence_id = sentence_ids(normalize(pl.col("text")))
    return frame.select(sentence_id.alias("sentence_id"), normalize(pl.col("view")).alias("text"))
