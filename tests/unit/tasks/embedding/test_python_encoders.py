"""Any Python object can be a teacher: its vectors of the corpus become embeddings that a run finds by key."""

import numpy as np
import polars as pl
import pytest

from bsl.flows.cli.terminal.overrides import configured
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EvaluationError
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef
from bsl.storage.errors import ArtifactMissingError, SourceError
from bsl.tasks.corpus.ingest import ingest, locate_sources
from bsl.tasks.diagnostics.doctor import look_at_encoder
from bsl.tasks.embedding.embed import embed_tfidf
from bsl.tasks.embedding.python_encoders import embed_corpus
from bsl.tasks.embedding.vectors import computation_of
from bsl.tasks.training.teachers import check_teaching, find_teachers, teacher_vectors
from tests.corpora import publish

TEXTS = ["A man plays a guitar.", "A dog runs.", "Two women talk on the street."]


def lengths(sentences):
    return [[float(len(sentence)), 1.0, float(sentence.count("a"))] for sentence in sentences]


@pytest.fixture
def config(tmp_path):
    (tmp_path / "own.txt").write_text("\n".join(TEXTS))
    return configured("tiny-distil", [f'ingest.sources=[{{"path":"{tmp_path}/own.txt"}}]'])


def test_run_uses_embeddings_of_a_python_object_by_key(site, config):
    made = embed_corpus(lengths, config.ingest, site)
    corpus = ingest(site, locate_sources(site, config.ingest), config.ingest)
    teachers = find_teachers(site, [EncoderConfig(model=made.path)])
    check_teaching(site, corpus, teachers, DistilConfig())
    assert teacher_vectors(site, corpus, teachers, "fp32") == made
    store = site.open_store()
    rows = store.scan(corpus).join(store.scan(made), on="sentence_id").collect()
    np.testing.assert_array_equal(rows["embedding"].to_numpy(), np.array(lengths(rows["text"].to_list())))
    assert computation_of(store, made) == {"vectors": "object lengths"}
    assert look_at_encoder(site, EncoderConfig(model=made.path)) == f"{made}, stored vectors of a teacher"


def test_only_equal_vectors_share_a_teacher_artifact(site, config):
    made = embed_corpus(lengths, config.ingest, site)
    assert embed_corpus(lengths, config.ingest, site) == made
    assert embed_corpus(lambda texts: 2 * np.array(lengths(texts)), config.ingest, site, name="lengths") != made
    with pytest.raises(EvaluationError, match=r"corpus/.*is not finite"):
        embed_corpus(lambda texts: np.full((len(texts), 2), np.nan), config.ingest, site)
    assert len(site.open_store().refs("embeddings")) == 2


def test_teacher_vectors_of_another_corpus_sparse_incomplete_or_missing_are_refused(site, config):
    corpus = ingest(site, locate_sources(site, config.ingest), config.ingest)
    few, other = EmbeddingsRef(key=f"{6:064x}"), CorpusRef(key=f"{5:064x}")
    vector = {"sentence_id": pl.Series([1], dtype=pl.UInt64), "embedding": np.ones((1, 2), dtype=np.float32)}
    publish(site.open_store(), few, pl.DataFrame(vector), inputs={"corpus": corpus})
    for made, of, message in (
        (embed_corpus(lengths, config.ingest, site), other, r"vectors of corpus/.* \(expected corpus/0+5\)\. Embed"),
        (embed_tfidf(site, corpus, corpus), corpus, r"contains 3 rows of sparse_embeddings \(expected one row of `emb"),
        (few, corpus, r"contains 1 rows of embeddings \(expected one row of `embeddings`"),
    ):
        with pytest.raises(SourceError, match=message):
            check_teaching(site, of, [made], DistilConfig())
    with pytest.raises(ArtifactMissingError, match="matches nothing"):
        find_teachers(site, [EncoderConfig(model="embeddings/abcd")])
