"""Probes of held-out text: what belongs to a sentence, by where it stands and what was made of it.

Which sentences ask follows from their ids and a seed, so an encoder meets the same questions in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.corpus.passages import DRAWN, FEWEST_UNITS
from models.errors import EvaluationError
from models.evaluation.retrieval import Retrieval
from models.runtime.seeded_order import scattered
from models.views.cropping import halves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.evaluation.retrieval import ProbeName

FEWEST: Final = 30  # questions that a probe must have, and titles that it must choose among

TOO_FEW: Final = (
    f"too few documents to tell: expected {FEWEST} questions of {FEWEST_UNITS} that are held out, or of as many runs "
    f"of {DRAWN} sentences"
)
ENOUGH: Final = "100 documents, or 2,000 sentences in fewer, are usually enough"


def check_enough(held: pl.DataFrame, part: str) -> None:
    """Refuse a held-out part of which no probe could ask.

    Args:
        held: its rows, as `probes` takes them.
        part: what it is called.

    Raises:
        EvaluationError: it has too few different sentences or units.
    """
    sentences, units = held["sentence_id"].n_unique(), held["unit"].n_unique()
    if sentences < FEWEST or units < FEWEST_UNITS:
        raise EvaluationError(
            f"{TOO_FEW} in each part, found {sentences} sentences of {units} documents or runs in the part {part!r}; "
            f"give more text ({ENOUGH}), or labels"
        )


def probes(
    held: pl.DataFrame, trips: pl.DataFrame | None = None, *, questions: int = 1000, seed: int = 0
) -> dict[str, Retrieval]:
    """What can be asked of held-out sentences; a probe of too few questions or units is left out.

    Args:
        held: rows of the held-out parts of `models.corpus.passages.hold_out`; no two parts share a `unit`.
        trips: `sentence_id` and `text` of round trips of some of them.
        questions: most questions of a probe.
        seed: decides which sentences ask.

    Returns:
        By name: `neighbour` (the sentence behind it in its document), `title` (which title its document has), `round
        trip` (the sentence that a round trip was made of) and `crop` (the second half of a sentence's words).
    """
    # A sentence that stands in several places has no one neighbour, so it answers and asks nothing.
    once = held.filter(pl.len().over("sentence_id") == 1).sort("document", "position")
    made = [
        _neighbour(held, once, questions, seed),
        _title(once, questions, seed),
        _round_trip(held, trips, questions, seed),
        _crop(held, questions, seed),
    ]
    return {probe.name: probe for probe in made if probe is not None and _is_enough(probe)}


def _is_enough(probe: Retrieval) -> bool:
    """Whether a probe says anything: an interval by draws of fewer documents is too narrow."""
    return len(probe) >= FEWEST and len(np.unique(probe.unit)) >= FEWEST_UNITS


def _neighbour(held: pl.DataFrame, once: pl.DataFrame, questions: int, seed: int) -> Retrieval | None:
    before = pl.col("position") - 1
    following = once.filter(pl.col("position") > 0).select("document", before, answer="text")
    pairs = once.join(following, on=["document", "position"])
    return _among("neighbour", pairs, held["text"], questions, seed)


def _title(once: pl.DataFrame, questions: int, seed: int) -> Retrieval | None:
    named = once.filter(pl.col("title").is_not_null()).with_columns(answer=pl.col("title"))
    titles = named["title"].unique()
    return _among("title", named, titles, questions, seed) if len(titles) >= FEWEST else None


def _round_trip(held: pl.DataFrame, trips: pl.DataFrame | None, questions: int, seed: int) -> Retrieval | None:
    if trips is None:
        return None
    made = trips.select("sentence_id", asks="text")
    pairs = held.unique("sentence_id").join(made, on="sentence_id").with_columns(answer=pl.col("text"))
    return _among("round trip", pairs, held["text"], questions, seed, "asks")


def _crop(held: pl.DataFrame, questions: int, seed: int) -> Retrieval | None:
    unique = held.unique("sentence_id").sort("sentence_id")
    cut = [halves(text) for text in unique["text"]]
    pairs = unique.with_columns(
        asks=pl.Series([first for first, _ in cut]), answer=pl.Series([rest for _, rest in cut])
    )
    whole = pairs.filter((pl.col("asks") != "") & (pl.col("answer") != ""))  # a single word has no halves
    return _among("crop", whole, whole["answer"], questions, seed, "asks")


def _among(
    name: ProbeName, pairs: pl.DataFrame, targets: pl.Series, questions: int, seed: int, asks: str = "text"
) -> Retrieval:
    """Questions of some pairs: the text in column `asks` looks for that in `answer`, unless it is that text."""
    places = targets.unique().sort().to_frame("target").with_row_index("place")
    apart = pairs.filter(pl.col(asks) != pl.col("answer"))
    asked = apart.sort(scattered(pl.col("sentence_id"), seed)).head(questions)

    def place_of(column: str) -> NDArray[np.int64]:
        found = asked.join(places, left_on=column, right_on="target", how="left", maintain_order="left")["place"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy()

    return Retrieval(
        name,
        tuple(asked[asks]),
        tuple(places["target"]),
        place_of("answer"),
        asked["unit"].to_numpy().astype(np.int64),
        place_of(asks),
    )
