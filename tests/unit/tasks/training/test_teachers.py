"""Vectors of several teachers are joined: cosines of the joint vectors are the mean of the teachers' cosines."""

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError, TrainingError
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.embedding.embed import embed
from bsl.tasks.training.teachers import check_teaching, find_teachers, join_teachers
from tests.corpora import publish_corpus, publish_vectors
from tests.tiny_encoder import ORIGINALS, write_tiny


@pytest.fixture
def corpus(site):
    return publish_corpus(site, ORIGINALS)


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def test_joined_teacher_cosines_equal_the_mean_of_teacher_cosines(site, corpus, tmp_path):
    models = [resolve_model(str(write_tiny(tmp_path / f"model-{seed}", seed=seed))) for seed in range(2)]
    configs = [EncoderConfig(model=models[0].identity), EncoderConfig(model=models[1].identity, pooling="cls")]
    refs = tuple(
        embed(site, *both, "fp32") for both in ((models[0], corpus, configs[0]), (models[1], corpus, configs[1]))
    )
    store = site.open_store()
    each = [store.scan(ref).collect()["embedding"].to_numpy() for ref in refs]
    joined = store.scan(ref := join_teachers(site, teachers=refs)).collect()
    assert joined["sentence_id"].is_sorted()
    found = joined["embedding"].to_numpy()
    assert found.shape == (4, sum(vectors.shape[1] for vectors in each))
    np.testing.assert_allclose(cosines(found), np.mean([cosines(vectors) for vectors in each], axis=0), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert store.manifest(ref).figures["dimensions"] == found.shape[1]


def test_zero_teacher_vector_contributes_nothing_to_joined_vectors(site):
    refs, texts = [], pl.Series("text", ORIGINALS[:2])
    for digit, rows in (("1", [[3.0, 4.0], [0.0, 0.0]]), ("2", [[0.0, 2.0], [1.0, 0.0]])):
        refs.append(publish_vectors(site, texts, np.array(rows), digit))
    table = site.open_store().scan(join_teachers(site, teachers=tuple(refs))).collect()
    ids = texts.to_frame().select(sentence_ids(pl.col("text")).alias("sentence_id"))
    joined = ids.join(table, "sentence_id", maintain_order="left")["embedding"].to_numpy()
    half = np.sqrt(0.5)
    np.testing.assert_allclose(joined, [[0.6 * half, 0.8 * half, 0, half], [0, 0, half, 0]], atol=1e-6)


def test_queue_larger_than_the_stored_corpus_is_refused(site, corpus):
    check_teaching(site, corpus, (), DistilConfig(queue=4))
    check_teaching(site, corpus, (), DistilConfig())
    check_teaching(site, CorpusRef(key=f"{5:064x}"), (), DistilConfig(queue=5))
    with pytest.raises(TrainingError, match=r"queue is 5, but there are only 4 sentences.* at most 2"):
        check_teaching(site, corpus, (), DistilConfig(queue=5))


def test_teacher_with_custom_code_is_refused(site, tmp_path):
    folder = write_tiny(tmp_path / "teacher")
    (found,) = find_teachers(site, [EncoderConfig(model=str(folder), max_length=24)])
    assert (found.config.model, found.config.max_length) == (resolve_model(str(folder)).identity, 24)
    (folder / "modules.json").write_text('[{"type": "theirs.Transformer", "path": ""}]')
    with pytest.raises(EncoderError, match="is custom code, which is never run"):
        find_teachers(site, [EncoderConfig(model=str(folder))])
