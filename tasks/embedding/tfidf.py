"""A corpus and evaluation sets to the vectors of unigram TF-IDF: a system without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.runtime.partitions import bits_for, in_range
from storage.artifacts.refs import CorpusRef, EmbeddingsRef
from tasks.corpus.evaluation_sets import EvaluationSet, unique_sentences
from tasks.embedding.vectors import MADE, SPARSE, sparse_table
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from pydantic import JsonValue

    from storage.artifacts.store import Store

TITLE: Final = "Unigram TF-IDF"
"""What tables call it."""


@stage(ref=EmbeddingsRef, version=2)
def embed_tfidf(work: Work, corpus: CorpusRef, sets: tuple[EvaluationSet, ...] | CorpusRef) -> None:
    """Fit TF-IDF on the corpus that an encoder is trained on, and embed the sentences of all sets, or of a corpus.

    Raises:
        EvaluationError: the corpus has no words.
    """
    from models.encoder.tfidf import TfIdf

    fitted = TfIdf(rows["text"].to_list() for rows in _lots(work.store, corpus))
    lots = _lots(work.store, sets) if isinstance(sets, CorpusRef) else [unique_sentences(sets)]
    rows = work.draft.write_all(
        (sparse_table(lot["sentence_id"], fitted.vectors(lot["text"].to_list())) for lot in lots), SPARSE
    )
    made: dict[str, JsonValue] = {"vectors": "tfidf", "fitted": str(corpus)}
    work.draft.note({"sentences": rows, "dimensions": fitted.width, MADE: made})


def _lots(store: Store, corpus: CorpusRef) -> Iterator[pl.DataFrame]:
    """The sentences of a corpus in the order of their ids, so many at a time as are held."""
    table, bits = store.scan(corpus).select("sentence_id", "text"), bits_for(store.manifest(corpus).rows)
    return (in_range(table, number, bits).collect() for number in range(1 << bits))
