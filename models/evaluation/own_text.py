"""Retrieval questions about held-out text: find a sentence's neighbour, title or other half.

Sentence ids and a seed decide which sentences are queries, so the questions are the same in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.corpus.passages import DRAWN, ENOUGH, FEWEST_UNITS
from bsl.models.evaluation.questions import FEWEST, crop, neighbour, title
from bsl.models.evaluation.retrieval import Retrieval
from bsl.models.runtime.partitions import scattered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from bsl.models.evaluation.questions import Questions

QUESTIONS: Final[Mapping[str, Callable[[pl.DataFrame], Questions | None]]] = {
    "neighbour": neighbour,
    "title": title,
    "crop": crop,
}
"""The kinds of questions, in the order of the tables."""


def too_few(held_out: pl.DataFrame, lost: str = "") -> str:
    """Return the message for text that gives no questions.

    Args:
        held_out: As for `retrieval_questions`.
        lost: Clause of `LeftOut.summary`.
    """
    sentences, units = held_out["sentence_id"].n_unique(), held_out["unit"].n_unique()
    excluded = f"; {lost}" if lost else ""
    return (
        f"too few documents: expected {FEWEST} questions about {FEWEST_UNITS} held-out documents, or about as many "
        f"runs of {DRAWN} sentences (found documents or runs: {units}, different sentences in them: {sentences}"
        f"{excluded}). Give more text: {ENOUGH}"
    )


def retrieval_questions(held_out: pl.DataFrame, *, questions: int = 1000, seed: int = 0) -> dict[str, Retrieval]:
    """Return all questions about held-out sentences, by kind; a kind with too few questions or units is excluded.

    Args:
        held_out: Rows of the held-out part of `bsl.models.corpus.passages.hold_out`.
        questions: Maximal number of questions of a kind.
        seed: Seed of the choice of queries.
    """
    found = {name: ask(held_out) for name, ask in QUESTIONS.items()}
    drawn = [_retrieval(name, *kind, questions, seed) for name, kind in found.items() if kind is not None]
    # With fewer documents a bootstrap interval is too narrow.
    return {probe.name: probe for probe in drawn if len(probe) >= FEWEST and len(np.unique(probe.unit)) >= FEWEST_UNITS}


def _retrieval(name: str, pairs: pl.DataFrame, texts: pl.Series, most: int, seed: int) -> Retrieval:
    """Draw at most `most` questions of one kind; a query that equals its answer is excluded."""
    targets = texts.unique().sort().to_frame("target").with_row_index("index")
    different = pairs.filter(pl.col("asks") != pl.col("answer"))
    chosen = different.sort(scattered(pl.col("sentence_id"), seed)).head(most)

    def index_of(column: str) -> NDArray[np.int64]:
        found = chosen.join(targets, left_on=column, right_on="target", how="left", maintain_order="left")["index"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy()

    return Retrieval(
        name,
        tuple(chosen["asks"]),
        tuple(targets["target"]),
        index_of("answer"),
        chosen["unit"].to_numpy().astype(np.int64),
        index_of("asks"),
    )
