"""A Python object as a teacher: its vectors of a corpus, kept in the store, where a run finds them by their key."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Final, Protocol, TypeAlias

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from models.errors import EvaluationError
from storage.artifacts.keys import NotInKey
from storage.artifacts.refs import CorpusRef, EmbeddingsRef
from storage.filesystem.digests import file_sha256
from tasks.corpus.ingest import ingest, locate_sources
from tasks.embedding.vectors import MADE
from tasks.stage.cached import StageContext, stage
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray
    from pydantic import JsonValue

    from tasks.corpus.config import IngestConfig


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


class PythonVectors(BaseModel):
    """Vectors that came from outside, in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str
    """What signatures call who made them."""
    sha256: str
    """Of the file."""
    path: Annotated[Path, NotInKey]
    """An .npy file, float32: a row for each sentence of the corpus, by their ids."""


def embed_corpus(
    encoder: TextEncoder, config: IngestConfig, site: RunContext | None = None, name: str | None = None
) -> EmbeddingsRef:
    """Let an object embed the corpus that a run will learn from; `teacher.model` takes the path of what it returns.

    The corpus is made if it is not there. Nothing of the object itself is in a key: other vectors are another teacher.

    Args:
        encoder: has `encode(list[str]) -> array`, or is called itself; is given each sentence once.
        config: the run's `ingest`.
        site: the run's store and mirror.
        name: what signatures call the object; its class, or a function's own name, unless given.

    Raises:
        SourceError: a source is nowhere to be had.
        EvaluationError: the object gives no vector for a sentence, or one that is not finite.
    """
    place = site or RunContext()
    corpus = ingest(place, locate_sources(place, config), config)
    sentences = place.open_store().scan(corpus).select("sentence_id", "text").collect().sort("sentence_id")
    vectors_ND = embed_texts(encoder, sentences["text"].to_list(), [str(corpus)] * sentences.height)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        np.save(path, vectors_ND)
        given = PythonVectors(name=name or name_of(encoder), sha256=file_sha256(path), path=path)
        return take_vectors(place, corpus, given)


@stage(ref=EmbeddingsRef, version=1)
def take_vectors(work: StageContext, corpus: CorpusRef, given: PythonVectors) -> None:
    """Put vectors that an object made beside the sentences of a corpus."""
    ids = work.store.scan(corpus).select("sentence_id").collect()["sentence_id"].sort()
    vectors_ND = np.load(given.path)
    work.draft.write(pl.DataFrame({"sentence_id": ids, "embedding": vectors_ND}))
    made: dict[str, JsonValue] = {"vectors": f"object {given.name}"}
    work.draft.note({"sentences": len(ids), "dimensions": vectors_ND.shape[1], MADE: made})
