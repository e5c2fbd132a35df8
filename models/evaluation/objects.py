"""Vectors of any object that embeds text, which is not trusted to give good ones."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

CALL_TEXTS: Final = 8192  # texts a call: enough for an encoder to sort them by length, few enough to show progress


class Encodes(Protocol):
    """What is asked of an object: texts in, one vector for each out."""

    def encode(self, texts: list[str], /) -> ArrayLike:
        """Vectors (n, d) of n texts, row by row; NumPy, or what `np.asarray` takes."""


TextEncoder: TypeAlias = "Encodes | Callable[[list[str]], ArrayLike]"
"""An object with `encode`, as InferSent's and sentence-transformers', or a callable, as the Universal Sentence
Encoder's module is."""


def name_of(encoder: TextEncoder) -> str:
    """What signatures call an object: a function by its name, any other by its class."""
    named = encoder if isinstance(encoder, FunctionType) else type(encoder)
    return named.__qualname__.replace("|", "/")


def embed_texts(encoder: TextEncoder, texts: Sequence[str], places: Sequence[str]) -> NDArray[np.float32]:
    """Vectors (n, d) of texts.

    Args:
        encoder: Has `encode(list[str])`, or is called itself; with up to `CALL_TEXTS` texts.
        texts: What to embed.
        places: Where each text stands, for errors.

    Raises:
        EvaluationError: The object gives another number of vectors than texts, changes their width, or gives a value
            that is not finite; the message names the place and the sentence.
    """
    encode: Callable[[list[str]], ArrayLike] = encoder.encode if hasattr(encoder, "encode") else encoder
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), CALL_TEXTS):
        chunk = list(texts[start : start + CALL_TEXTS])
        part = _matrix(encode(chunk), chunk, places[start])
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
