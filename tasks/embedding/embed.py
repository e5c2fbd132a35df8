"""Embed evaluation sets or a corpus: each unique sentence once, and once for all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError, NoEmbeddingError
from bsl.models.runtime.partitions import bits_for, in_range
from bsl.models.runtime.precision import Precision
from bsl.storage.artifacts.refs import CheckpointRef, CorpusRef, EmbeddingsRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, unique_sentences
from bsl.tasks.embedding.encode import ResumableEncoding
from bsl.tasks.embedding.encoders import encoder_folder
from bsl.tasks.embedding.shards import EMBED_VERSION, WHAT, ReusableVectors, embed_ranges, encoded, is_large
from bsl.tasks.embedding.vectors import SPARSE, encoder_computation, sparse_table
from bsl.tasks.figures import VectorsFigures
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from bsl.storage.artifacts.store import Store


@stage(ref=EmbeddingsRef, version=EMBED_VERSION)
def embed(
    context: StageContext,
    encoder: CheckpointRef | ResolvedModel,
    texts: tuple[EvaluationSet, ...] | CorpusRef,
    config: EncoderConfig,
    precision: Precision,
) -> None:
    """Embed all unique sentences, part by part, reusing the vectors of earlier runs.

    A killed run resumes after its last finished part. A large corpus is embedded in shards, here or on the workers of a
    Dask cluster. Reused vectors are equal to the bit; a sentence embedded again in another batch differs by rounding.

    Raises:
        EncoderError: A sentence has no embedding; the message names its dataset, row and text.
    """
    reusable = ReusableVectors(context.store, context.draft.provenance)
    if isinstance(texts, CorpusRef) and is_large(rows := context.store.manifest(texts).rows):
        embedded, width = embed_ranges(context, reusable, encoder, texts, config, precision)
    else:
        table, embedded = _embed_at_once(
            context, reusable, ResumableEncoding(context.site, encoder, config, precision), texts
        )
        context.draft.write(table)
        rows, width = table.height, table.schema["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
    computation = encoder_computation(encoder_folder(context.store, encoder), config, precision)
    context.draft.note(VectorsFigures(sentences=rows, embedded=embedded, dimensions=width, signature=computation))


def _embed_at_once(
    context: StageContext,
    reusable: ReusableVectors,
    encoding: ResumableEncoding,
    texts: tuple[EvaluationSet, ...] | CorpusRef,
) -> tuple[pl.DataFrame, int]:
    """Return the vectors, and the number of newly embedded sentences."""
    sentences = _sentences(context.store, texts)
    known = reusable.of(sentences)
    missing = sentences.join(known, on="sentence_id", how="anti").sort("sentence_id")
    parts = [known] if known.height else []
    try:
        parts += encoded(context, encoding, missing, progress_of(WHAT))
    except NoEmbeddingError as error:
        text = missing["text"][error.number]
        raise EncoderError(f"{_place(texts, text)}: {text[:60]!r} {error.reason}") from error
    return pl.concat(parts).sort("sentence_id"), missing.height


def _sentences(store: Store, texts: Sequence[EvaluationSet] | CorpusRef) -> pl.DataFrame:
    """Return `sentence_id` and `text` of each unique sentence."""
    if isinstance(texts, CorpusRef):
        return store.scan(texts).select("sentence_id", "text").collect()
    return unique_sentences(texts)


def _place(texts: Sequence[EvaluationSet] | CorpusRef, text: str) -> str:
    """Return the first place of a sentence, for messages."""
    if isinstance(texts, CorpusRef):
        return str(texts)
    rows = ((evaluation_set, (evaluation_set.sentences() == text).arg_true()) for evaluation_set in texts)
    return next(evaluation_set.place(numbers[0]) for evaluation_set, numbers in rows if len(numbers))


TITLE: Final = "Unigram TF-IDF"
"""Name in tables."""


@stage(ref=EmbeddingsRef, version=2)
def embed_tfidf(context: StageContext, corpus: CorpusRef, sets: tuple[EvaluationSet, ...] | CorpusRef) -> None:
    """Fit TF-IDF on the training corpus, and embed the sentences of all sets, or of a corpus.

    Raises:
        EvaluationError: The corpus has no words.
    """
    from bsl.models.encoder.tfidf import TfIdf

    fitted = TfIdf(rows["text"].to_list() for rows in _batches(context.store, corpus))
    batches = _batches(context.store, sets) if isinstance(sets, CorpusRef) else [unique_sentences(sets)]
    rows = context.draft.write_all(
        (sparse_table(batch["sentence_id"], fitted.vectors(batch["text"].to_list())) for batch in batches), SPARSE
    )
    computation: dict[str, JsonValue] = {"vectors": "tfidf", "fitted": str(corpus)}
    context.draft.note(VectorsFigures(sentences=rows, dimensions=fitted.width, signature=computation))


def _batches(store: Store, corpus: CorpusRef) -> Iterator[pl.DataFrame]:
    """Yield the sentences of a corpus in the order of their ids, in ranges that fit in memory."""
    table, bits = store.scan(corpus).select("sentence_id", "text"), bits_for(store.manifest(corpus).rows)
    return (in_range(table, number, bits).collect() for number in range(1 << bits))
