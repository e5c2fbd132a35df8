"""Probes of held-out text: what belongs to a sentence, by where it stands and what was made of it.

Which sentences ask follows from their ids and a seed, so an encoder meets the same questions in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.corpus.passages import DRAWN, FEWEST_UNITS
from models.errors import EvaluationError
from models.evaluation.questions import FEWEST, Asked, HeldText, crop, neighbour, round_trip, title
from models.evaluation.retrieval import Retrieval
from models.runtime.seeded_order import scattered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

QUESTIONS: Final[Mapping[str, Callable[[HeldText], Asked | None]]] = {
    "neighbour": neighbour,
    "title": title,
    "round trip": round_trip,
    "crop": crop,
}
"""The kinds of questions, in the order of the tables."""

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
    """Return all questions about held-out sentences, by name; too few questions or units of a kind are left out.

    Args:
        held: rows of the held-out parts of `models.corpus.passages.hold_out`; no two parts share a `unit`.
        trips: `sentence_id` and `text` of round trips of some of them.
        questions: most questions of a kind.
        seed: decides which sentences ask.
    """
    once = held.filter(pl.len().over("sentence_id") == 1).sort("document", "position")
    text = HeldText(held, once, trips)
    asked = {name: ask(text) for name, ask in QUESTIONS.items()}
    made = {name: _retrieval(name, own, questions, seed) for name, own in asked.items() if own is not None}
    return {name: probe for name, probe in made.items() if _is_enough(probe)}


def _is_enough(probe: Retrieval) -> bool:
    """Whether a probe says anything: an interval by draws of fewer documents is too narrow."""
    return len(probe) >= FEWEST and len(np.unique(probe.unit)) >= FEWEST_UNITS


def _retrieval(name: str, own: Asked, questions: int, seed: int) -> Retrieval:
    """Return some of the questions; a text that is its own answer asks nothing."""
    places = own.targets.unique().sort().to_frame("target").with_row_index("place")
    apart = own.pairs.filter(pl.col("asks") != pl.col("answer"))
    asked = apart.sort(scattered(pl.col("sentence_id"), seed)).head(questions)

    def place_of(column: str) -> NDArray[np.int64]:
        found = asked.join(places, left_on=column, right_on="target", how="left", maintain_order="left")["place"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy()

    return Retrieval(
        name,
        tuple(asked["asks"]),
        tuple(places["target"]),
        place_of("answer"),
        asked["unit"].to_numpy().astype(np.int64),
        place_of("asks"),
    )
