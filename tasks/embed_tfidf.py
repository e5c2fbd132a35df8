"""A corpus and evaluation sets to the vectors of unigram TF-IDF: a system without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.refs import CorpusRef, EmbeddingsRef
from tasks.evaluation.sets import EvaluationSet, unique_sentences
from tasks.evaluation.vectors import MADE, SPARSE, sparse_table
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from pydantic import JsonValue

TITLE: Final = "Unigram TF-IDF"
"""What tables call it."""


@stage(ref=EmbeddingsRef, version=2)
def embed_tfidf(work: Work, corpus: CorpusRef, sets: tuple[EvaluationSet, ...] | CorpusRef) -> None:
    """Fit TF-IDF on the corpus that an encoder is trained on, and embed the sentences of all sets, or of a corpus.

    Raises:
        EvaluationError: the corpus has no words.
    """
    from models.baselines.tfidf import tfidf_vectors

    fitted_on = work.store.scan(corpus).select("text").collect()["text"].to_list()
    sentences = work.store.scan(sets).collect() if isinstance(sets, CorpusRef) else unique_sentences(sets)
    vectors = tfidf_vectors(fitted_on, sentences["text"].to_list())
    work.draft.write(sparse_table(sentences["sentence_id"], vectors), SPARSE)
    made: dict[str, JsonValue] = {"vectors": "tfidf", "fitted": str(corpus)}
    work.draft.note({"sentences": sentences.height, "dimensions": vectors.shape[1], MADE: made})
