"""Find teachers before the first stage, and compute their vectors of a corpus once.

A teacher's vectors are an embeddings artifact like any other; the vectors of several teachers are joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from bsl.models.runtime.rows import unit_vectors
from bsl.storage.artifacts.lookup import find
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef
from bsl.storage.errors import SourceError
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.encoders import STORED_VECTORS, ResolvedEncoder, resolve
from bsl.tasks.embedding.vectors import computation_of
from bsl.tasks.figures import VectorsFigures
from bsl.tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.objectives.config import AnyObjective
    from bsl.models.runtime.precision import Precision
    from bsl.tasks.stage.run_context import RunContext


Teacher: TypeAlias = ResolvedEncoder | EmbeddingsRef
"""An encoder with its settings, or stored vectors of the corpus."""


def find_teachers(site: RunContext, teachers: Iterable[EncoderConfig]) -> tuple[Teacher, ...]:
    """Find the teachers of a student: encoders, or stored vectors named as `embeddings/<key>`.

    Raises:
        SourceError, AssetError, ArtifactMissingError: A teacher does not exist.
        EncoderError: A teacher's folder describes an encoder that this project cannot compute.
    """
    return tuple(_found(site, config) for config in teachers)


def _found(site: RunContext, config: EncoderConfig) -> Teacher:
    if STORED_VECTORS.fullmatch(config.model):
        store = site.open_store()
        vectors = EmbeddingsRef(key=find(store, config.model).key)
        store.used(vectors)
        return vectors
    return resolve(site, config)


def check_teaching(site: RunContext, corpus: CorpusRef, teachers: Iterable[Teacher], objective: AnyObjective) -> None:
    """Check that stored vectors are of this corpus, and that the queue is not longer than it, if it is in the store.

    Raises:
        SourceError: The vectors are of another corpus, or not one for each sentence; the message names both.
        TrainingError: The queue is longer than the corpus; the message has both numbers.
    """
    store = site.open_store()
    sentences = store.manifest(corpus).rows if store.defect(corpus) is None else None
    for vectors in [teacher for teacher in teachers if isinstance(teacher, EmbeddingsRef)]:
        manifest = store.manifest(vectors)
        inputs = manifest.provenance.inputs.values()
        texts = [entry.path for entry in inputs if entry.kind == corpus.kind]
        if corpus.path not in texts:
            raise SourceError(
                f"{vectors}: vectors of {', '.join(texts) or 'no corpus'} (expected {corpus.path}). Embed this run's "
                "corpus with the teacher (bsl.tasks.embedding.python_encoders.embed_corpus)."
            )
        if vectors.kind not in manifest.tables or sentences not in (None, manifest.rows):
            raise SourceError(
                f"{vectors}: contains {manifest.rows} rows of {', '.join(manifest.tables)} (expected one row of "
                f"`embeddings` for each sentence of {corpus.path}). Embed the corpus with the teacher "
                "(bsl.tasks.embedding.python_encoders.embed_corpus)."
            )
    if sentences is not None:
        objective.check_sentences(sentences)


def teacher_vectors(
    site: RunContext, corpus: CorpusRef, teachers: tuple[Teacher, ...], precision: Precision
) -> EmbeddingsRef | None:
    """Compute the teachers' vectors of a corpus, joined if there are several; None without a teacher."""
    vectors = [_vectors(site, corpus, teacher, precision) for teacher in teachers]
    return join_teachers(site, tuple(vectors)) if len(vectors) > 1 else next(iter(vectors), None)


def _vectors(site: RunContext, corpus: CorpusRef, teacher: Teacher, precision: Precision) -> EmbeddingsRef:
    if isinstance(teacher, EmbeddingsRef):
        return teacher
    return embed(site, teacher.encoder, corpus, teacher.config, precision)


@stage(ref=EmbeddingsRef, version=2)
def join_teachers(context: StageContext, teachers: tuple[EmbeddingsRef, ...]) -> None:
    """Join teachers' vectors so that cosines are the mean of the teachers' cosines.

    The unit vectors of the teachers, each divided by the square root of the number of teachers, are concatenated. The
    dot product of two such vectors is the mean of the teachers' dot products, for any widths. A zero vector, as of a
    text without a known word, stays zero, and its cosines are 0.
    """
    frames = [context.store.scan(teacher).collect() for teacher in teachers]
    ids = frames[0]["sentence_id"]
    assert all(frame["sentence_id"].equals(ids) for frame in frames)  # same corpus, sorted by id
    vectors = [frame["embedding"].to_numpy() for frame in frames]
    joined = np.concatenate([unit_vectors(x) / np.sqrt(len(vectors)) for x in vectors], axis=1).astype(np.float32)
    context.draft.write(pl.DataFrame({"sentence_id": ids, "embedding": joined}))
    computation = computation_of(context.store, teachers[0]) | {"vectors": f"mean of {len(teachers)} encoders"}
    context.draft.note(VectorsFigures(sentences=len(ids), dimensions=joined.shape[1], signature=computation))
