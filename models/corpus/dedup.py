"""Exact duplicates: one row per sentence id, in id order."""

from __future__ import annotations

import polars as pl

from models.corpus.errors import SentenceIdCollisionError


def deduplicate(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the first row of every sentence id, sorted by id.

    Args:
        frame: columns `sentence_id` (UInt64), `text` and any others, rows in the order in which they were read.

    Returns:
        The same columns, ids strictly ascending. All other columns are those of the first occurrence.

    Raises:
        SentenceIdCollisionError: one id stands for two different texts.
    """
    # A stable sort puts equal ids side by side with the first occurrence in front, so that order, duplicates and
    # collisions come from one pass. It is as fast as a hash table here and the output must be sorted anyway.
    ordered = frame.sort("sentence_id", maintain_order=True)
    repeated = (pl.col("sentence_id") == pl.col("sentence_id").shift(1)).fill_null(value=False)
    other_text = pl.col("text") != pl.col("text").shift(1)
    marked = ordered.select(repeated=repeated, collides=repeated & other_text)
    if marked["collides"].any():
        _refuse(ordered, marked["collides"])
    return ordered.filter(~marked["repeated"])


def _refuse(ordered: pl.DataFrame, collides: pl.Series) -> None:
    row = int(collides.arg_true()[0])
    identity, second = ordered["sentence_id"][row], ordered["text"][row]
    raise SentenceIdCollisionError(
        f"two different sentences have the id {identity:#018x}: {ordered['text'][row - 1]!r} and {second!r}; every "
        "sentence needs an id of its own (64 bits make this about 1 in 40,000 for 30 million sentences); remove one"
    )
