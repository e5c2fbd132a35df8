"""Retrieval questions about held-out text: next sentence, title, second half of a sentence.

A kind of questions is a function of the held-out sentences, rows of `bsl.models.corpus.passages.hold_out` with their
`unit`. It returns the pairs (`sentence_id`, `unit`, `asks`: text of the query, `answer`: text of the answer) and the
texts to search for the answers; None if there are too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from bsl.models.views.cropping import halves

if TYPE_CHECKING:
    Questions: TypeAlias = tuple[pl.DataFrame, pl.Series]

FEWEST: Final = 30  # minimal number of questions of a kind, and of different titles


def neighbour(sentences: pl.DataFrame) -> Questions:
    """Ask for the next sentence of the document; it may be that of several sentences, as the answer to questions is."""
    in_one_document = sentences.filter(pl.col("document").n_unique().over("sentence_id") == 1)
    before = pl.col("position") - 1
    following = in_one_document.filter(pl.col("position") > 0).select("document", before, answer="text")
    return _once(sentences).join(following, on=["document", "position"]).with_columns(asks="text"), sentences["text"]


def title(sentences: pl.DataFrame) -> Questions | None:
    """Ask for the title of the document; None with too few titles."""
    titled = _once(sentences).filter(pl.col("title").is_not_null()).with_columns(asks="text", answer="title")
    titles = titled["title"].unique()
    return (titled, titles) if len(titles) >= FEWEST else None


def crop(sentences: pl.DataFrame) -> Questions:
    """Ask for the second half of a sentence's words, given the first."""
    unique = sentences.unique("sentence_id", keep="first").sort("sentence_id")
    cut = [halves(text) for text in unique["text"]]
    pairs = unique.with_columns(
        asks=pl.Series([first for first, _ in cut]), answer=pl.Series([rest for _, rest in cut])
    )
    complete = pairs.filter((pl.col("asks") != "") & (pl.col("answer") != ""))  # a single word has no halves
    return complete, complete["answer"]


def _once(sentences: pl.DataFrame) -> pl.DataFrame:
    """Return the sentences that occur once, in order; others have no unique neighbour or title."""
    return sentences.filter(pl.len().over("sentence_id") == 1).sort("document", "position")
