"""Retrieval questions about held-out text: next sentence, title, second half of a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from bsl.models.views.cropping import halves

FEWEST: Final = 30  # minimal number of questions of a kind, and of different titles


@dataclass(frozen=True)
class HeldOutText:
    """Held-out sentences, from which questions are made.

    Attributes:
        sentences: Rows of `bsl.models.corpus.passages.hold_out` with their `unit`.
        once: Sentences that occur once, in order; others have no unique neighbour or title.
    """

    sentences: pl.DataFrame
    once: pl.DataFrame


@dataclass(frozen=True)
class QuestionSet:
    """Questions of one kind.

    Attributes:
        pairs: `sentence_id`, `unit`, `asks` (text of the query) and `answer` (text of the answer).
        targets: The texts to search for the answers.
    """

    pairs: pl.DataFrame
    targets: pl.Series


def neighbour(text: HeldOutText) -> QuestionSet:
    """Ask for the next sentence of the document."""
    before = pl.col("position") - 1
    following = text.once.filter(pl.col("position") > 0).select("document", before, answer="text")
    pairs = text.once.join(following, on=["document", "position"])
    return QuestionSet(pairs.with_columns(asks="text"), text.sentences["text"])


def title(text: HeldOutText) -> QuestionSet | None:
    """Ask for the title of the document; None with too few titles."""
    titled = text.once.filter(pl.col("title").is_not_null()).with_columns(asks="text", answer="title")
    titles = titled["title"].unique()
    return QuestionSet(titled, titles) if len(titles) >= FEWEST else None


def crop(held_out: HeldOutText) -> QuestionSet:
    """Ask for the second half of a sentence's words, given the first."""
    unique = held_out.sentences.unique("sentence_id").sort("sentence_id")
    cut = [halves(text) for text in unique["text"]]
    pairs = unique.with_columns(
        asks=pl.Series([first for first, _ in cut]), answer=pl.Series([rest for _, rest in cut])
    )
    complete = pairs.filter((pl.col("asks") != "") & (pl.col("answer") != ""))  # a single word has no halves
    return QuestionSet(complete, complete["answer"])
