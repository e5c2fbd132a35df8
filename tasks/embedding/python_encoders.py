"""Python objects as encoders: embed texts, or store the vectors of a corpus for use as a teacher."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Final, Protocol, TypeAlias

import numpy as np
import polars as pl

from bsl.models.errors import EvaluationError
from bsl.models.runtime.rows import on_cpu
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef
from bsl.storage.filesystem.digests import file_sha256
from bsl.storage.record import NotInKey, Record
from bsl.tasks.corpus.ingest import ingest, locate_sources
from bsl.tasks.figures import VectorsFigures
from bsl.tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray
    from pydantic import JsonValue

    from bsl.tasks.corpus.config import IngestConfig
    from bsl.tasks.stage.run_context import RunContext


CALL_TEXTS: Final = 8192  # texts per call: enough to sort by length, few enough to show progress


class Encodes(Protocol):
    """An object with an `encode` method that returns one vector for each text."""

    def encode(self, texts: list[str], /) -> ArrayLike:
        """Return vectors (n, d) of n texts, one per row, in a form that `np.asarray` accepts."""


TextEncoder: TypeAlias = "Encodes | Callable[[list[str]], ArrayLike]"
"""An object with `encode`, such as InferSent's and sentence-transformers', or a callable, such as the module of the
Universal Sentence Encoder."""


def name_of(encoder: TextEncoder) -> str:
    """Return an object's name for signatures: a function's name, or the name of the class."""
    named = encoder if isinstance(encoder, FunctionType) else type(encoder)
    return named.__qualname__.replace("|", "/")


def embed_texts(encoder: TextEncoder, texts: Sequence[str], places: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts with a Python object; return vectors (n, d).

    Args:
        encoder: An object with `encode(list[str])`, or a callable; it receives up to `CALL_TEXTS` texts per call.
        texts: Texts to embed.
        places: Place of each text, such as dataset and row, for errors.

    Raises:
        TypeError: The object cannot be called and has no method `encode`.
        EvaluationError: The number of vectors differs from the number of texts, their width changes, or a value is not
            finite; the message names the place and the sentence.
    """
    encode = _function_of(encoder)
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), CALL_TEXTS):
        chunk = list(texts[start : start + CALL_TEXTS])
        part = _matrix(encode(chunk), chunk, places[start])
        if parts and part.shape[1] != parts[0].shape[1]:
            raise EvaluationError(
                f"{places[start]}: encode() returned vectors of {part.shape[1]} dimensions (expected "
                f"{parts[0].shape[1]}, as before). Return vectors of one width for all texts."
            )
        bad = np.flatnonzero(~np.isfinite(part).all(axis=1))
        if len(bad):
            raise EvaluationError(
                f"{places[start + bad[0]]}: the vector of {chunk[bad[0]][:60]!r} is not finite ({len(bad)} of "
                f"{len(chunk)} texts). Check the encoder's weights and precision."
            )
        parts.append(part)
    return np.concatenate(parts)


def _function_of(encoder: TextEncoder) -> Callable[[list[str]], ArrayLike]:
    encode: Callable[[list[str]], ArrayLike] = encoder.encode if hasattr(encoder, "encode") else encoder
    if isinstance(encoder, str) or not callable(encode):  # a string has a method `encode` too
        raise TypeError(
            f"the encoder is {encoder!r:.80}, expected a function, or an object with encode(list[str]), such as "
            "SentenceEncoder.load(NAME)"
        )
    return encode


def _matrix(given: ArrayLike, texts: list[str], place: str) -> NDArray[np.float32]:
    try:
        vectors = np.asarray(on_cpu(given), dtype=np.float32)
    except (TypeError, ValueError) as error:  # rows of several lengths, a sparse matrix
        raise EvaluationError(
            f"{place}: encode() returned {type(given).__name__}, which is not a matrix ({error}; expected shape "
            f"({len(texts)}, d)). Return vectors of one width, dense."
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] == 0:
        raise EvaluationError(
            f"{place}: encode() returned shape {vectors.shape} for {len(texts)} texts (expected ({len(texts)}, d)). "
            "Return one vector per text, in order."
        )
    return vectors


class PythonVectors(Record):
    """Vectors from outside the pipeline, in a file."""

    name: str
    """Name of their encoder in signatures."""
    sha256: str
    path: Annotated[Path, NotInKey]
    """An .npy file, float32: one row for each sentence of the corpus, in the order of ids."""


def embed_corpus(
    encoder: TextEncoder, config: IngestConfig, site: RunContext, name: str | None = None
) -> EmbeddingsRef:
    """Embed a run's training corpus with a Python object; the `path` of the returned reference is a `teacher.model`.

    Ingests the corpus if it is not in the store. The key contains the digest of the vectors, not the object.

    Args:
        encoder: An object with `encode(list[str]) -> array`, or a callable; it receives each sentence once.
        config: Setting `ingest` of the run.
        site: Run context, with the store and mirror of the run.
        name: Name of the object in signatures; defaults to the name of its class, or of the function.

    Raises:
        TypeError: The object cannot be called and has no method `encode`.
        SourceError: A source is not available.
        EvaluationError: The object returns no vector for a sentence, or a vector that is not finite.
    """
    _function_of(encoder)  # the corpus may take minutes
    corpus = ingest(site, locate_sources(site, config), config)
    sentences = site.open_store().scan(corpus).select("sentence_id", "text").collect().sort("sentence_id")
    vectors_ND = embed_texts(encoder, sentences["text"].to_list(), [str(corpus)] * sentences.height)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        np.save(path, vectors_ND)
        given = PythonVectors(name=name or name_of(encoder), sha256=file_sha256(path), path=path)
        return store_vectors(site, corpus, given)


@stage(ref=EmbeddingsRef, version=1)
def store_vectors(context: StageContext, corpus: CorpusRef, given: PythonVectors) -> None:
    """Store an object's vectors of a corpus, with the sentence ids."""
    ids = context.store.scan(corpus).select("sentence_id").collect()["sentence_id"].sort()
    vectors_ND = np.load(given.path)
    context.draft.write(pl.DataFrame({"sentence_id": ids, "embedding": vectors_ND}))
    computation: dict[str, JsonValue] = {"vectors": f"object {given.name}"}
    context.draft.note(VectorsFigures(sentences=len(ids), dimensions=vectors_ND.shape[1], signature=computation))
