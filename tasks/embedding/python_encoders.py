"""A Python object as a teacher: its vectors of a corpus, kept in the store, where a run finds them by their key."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from models.evaluation.objects import TextEncoder, embed_texts, name_of
from storage.artifacts.keys import NotInKey
from storage.artifacts.refs import CorpusRef, EmbeddingsRef
from storage.filesystem.digests import file_sha256
from tasks.corpus.ingest import ingest, locate_sources
from tasks.embedding.vectors import MADE
from tasks.stage.cached import Work, stage
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasks.corpus.config import IngestConfig


class GivenVectors(BaseModel):
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
        given = GivenVectors(name=name or name_of(encoder), sha256=file_sha256(path), path=path)
        return take_vectors(place, corpus, given)


@stage(ref=EmbeddingsRef, version=1)
def take_vectors(work: Work, corpus: CorpusRef, given: GivenVectors) -> None:
    """Put vectors that an object made beside the sentences of a corpus."""
    ids = work.store.scan(corpus).select("sentence_id").collect()["sentence_id"].sort()
    vectors_ND = np.load(given.path)
    work.draft.write(pl.DataFrame({"sentence_id": ids, "embedding": vectors_ND}))
    made: dict[str, JsonValue] = {"vectors": f"object {given.name}"}
    work.draft.note({"sentences": len(ids), "dimensions": vectors_ND.shape[1], MADE: made})
