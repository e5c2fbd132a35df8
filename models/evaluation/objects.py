"""Any object that embeds text, scored like an encoder of this project."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import polars as pl

from models.errors import EvaluationError
from models.evaluation.correlation import cosine_scores
from models.evaluation.sts import sts_scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

CALL_TEXTS: Final = 8192  # texts a call: enough for an encoder to sort them by length, few enough to show progress


class TextEncoder(Protocol):
    """What is asked of an object: texts in, one vector for each out."""

    def encode(self, texts: list[str], /) -> ArrayLike:
        """Vectors (n, d) of n texts, row by row; NumPy, or what `np.asarray` takes."""


def evaluate_pairs(
    encoder: TextEncoder, sets: Mapping[tuple[str, str], pl.DataFrame], *, resamples: int = 1000, seed: int = 0
) -> pl.DataFrame:
    """Score an object on sets of scored pairs; each unique sentence is embedded once.

    Args:
        encoder: Has `encode(list[str])`; called with up to `CALL_TEXTS` texts.
        sets: (data set, split) → pairs: `subset`, `sentence1`, `sentence2`, `score`.
        resamples: TwoBranch draws for each 95 % interval.
        seed: Of the draws.

    Returns:
        One row a figure, columns as `models.evaluation.sts.ScoreRow`.

    Raises:
        EvaluationError: The object gives another number of vectors than texts, changes their width, or gives a value
            that is not finite; the message names the data set, the row and the sentence. Or as `sts_scores`.
    """
    place_of = _places(sets)
    vectors = embed_texts(encoder, list(place_of), list(place_of.values()))
    row_of = dict(zip(place_of, range(len(place_of)), strict=True))
    figures = []
    for (dataset, split), pairs in sets.items():
        sides = ([row_of[text] for text in pairs[side]] for side in ("sentence1", "sentence2"))
        cosines = cosine_scores(*(vectors[rows] for rows in sides))
        rows = pairs.select("subset", gold="score", cosine=pl.Series(cosines))
        figures += sts_scores(rows, dataset=dataset, split=split, resamples=resamples, seed=seed)
    return pl.DataFrame([asdict(figure) for figure in figures])


def embed_texts(encoder: TextEncoder, texts: Sequence[str], places: Sequence[str]) -> NDArray[np.float32]:
    """Vectors (n, d) of texts from an object that is not trusted; `places` says in errors where each text stands."""
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), CALL_TEXTS):
        chunk = list(texts[start : start + CALL_TEXTS])
        part = _matrix(encoder.encode(chunk), chunk, places[start])
        if parts and part.shape[1] != parts[0].shape[1]:
            raise EvaluationError(
                f"{places[start]}: the encoder gives vectors of {part.shape[1]} numbers, {parts[0].shape[1]} before; "
                "expected one width for all texts: look at its encode()"
            )
        bad = np.flatnonzero(~np.isfinite(part).all(axis=1))
        if len(bad):
            raise EvaluationError(
                f"{places[start + bad[0]]}: the vector of {chunk[bad[0]][:60]!r} is not finite ({len(bad)} of "
                f"{len(chunk)} texts), expected numbers; look at the encoder's weights and precision"
            )
        parts.append(part)
    return np.concatenate(parts)


def _matrix(given: ArrayLike, texts: list[str], place: str) -> NDArray[np.float32]:
    try:
        made = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:  # rows of several lengths, a tensor on a GPU
        raise EvaluationError(
            f"{place}: encode() gives {type(given).__name__} that is no matrix ({error}); expected ({len(texts)}, d): "
            "vectors of one width, on the CPU"
        ) from error
    if made.ndim != 2 or len(made) != len(texts) or made.shape[1] == 0:
        raise EvaluationError(
            f"{place}: encode() gives shape {made.shape} for {len(texts)} texts, expected ({len(texts)}, d); return "
            "one vector a text, in their order"
        )
    return made


def _places(sets: Mapping[tuple[str, str], pl.DataFrame]) -> dict[str, str]:
    """Sentence → where it first stands, in the order of the sets."""
    places: dict[str, str] = {}
    for (dataset, split), pairs in sets.items():
        for side in ("sentence1", "sentence2"):
            for row, text in enumerate(pairs[side], start=1):
                places.setdefault(text, f"{dataset} {split}, row {row}, {side}")
    return places
