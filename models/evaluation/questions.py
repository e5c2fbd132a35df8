"""Questions about held-out text: which text of it belongs to which, by its place or by its form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from models.views.cropping import halves

FEWEST: Final = 30  # questions of a kind that must be asked, and titles among which is chosen


@dataclass(frozen=True)
class HeldText:
    """Sentences that ask.

    Attributes:
        sentences: rows of `models.corpus.passages.hold_out` with their `unit`.
        once: those that occur once, in order: a sentence in several places has no one neighbour and no one title.
        trips: `sentence_id` and `text` of round trips of some sentences; None without any.
    """

    sentences: pl.DataFrame
    once: pl.DataFrame
    trips: pl.DataFrame | None


@dataclass(frozen=True)
class Asked:
    """Questions of one kind.

    Attributes:
        pairs: `sentence_id`, `unit`, `asks` and `answer` (texts).
        targets: the texts among which each answer is searched.
    """

    pairs: pl.DataFrame
    targets: pl.Series


def neighbour(held: HeldText) -> Asked:
    """Ask for the next sentence of the document."""
    before = pl.col("position") - 1
    following = held.once.filter(pl.col("position") > 0).select("document", before, answer="text")
    pairs = held.once.join(following, on=["document", "position"])
    return Asked(pairs.with_columns(asks="text"), held.sentences["text"])


def title(held: HeldText) -> Asked | None:
    """Ask for the title of the document; None with too few titles."""
    named = held.once.filter(pl.col("title").is_not_null()).with_columns(asks="text", answer="title")
    titles = named["title"].unique()
    return Asked(named, titles) if len(titles) >= FEWEST else None


def round_trip(held: HeldText) -> Asked | None:
    """Ask for the sentence that a round trip was made of; None without round trips."""
    if held.trips is None:
        return None
    made = held.trips.select("sentence_id", asks="text")
    pairs = held.sentences.unique("sentence_id").join(made, on="sentence_id").with_columns(answer="text")
    return Asked(pairs, held.sentences["text"])


def crop(held: HeldText) -> Asked:
    """Ask for the second half of the words of a sentence."""
    unique = held.sentences.unique("sentence_id").sort("sentence_id")
    cut = [halves(text) for text in unique["text"]]
    pairs = unique.with_columns(
        asks=pl.Series([first for first, _ in cut]), answer=pl.Series([rest for _, rest in cut])
    )
    whole = pairs.filter((pl.col("asks") != "") & (pl.col("answer") != ""))  # a single word has no halves
    return Asked(whole, whole["answer"])
