"""Vectors of several teachers are joined: cosines of the joint vectors are the mean of the teachers' cosines."""

import numpy as np
import polars as pl
import pytest

from models.encoder.config import EncoderConfig
from models.encoder.sentence_encoder import SentenceEncoder
from models.errors import EncoderError, TrainingError
from models.objectives.config import DistilConfig
from storage.artifacts.manifest import Provenance
from storage.artifacts.refs import CorpusRef, EmbeddingsRef
from storage.sources.model_sources import resolve_model
from tasks.embedding.embed import embed
from tasks.embedding.encoders import saved_settings
from tasks.embedding.vectors import MADE
from tasks.training.teachers import check_teaching, find_teachers, join_teachers
from tests.corpora import publish_corpus
from tests.tiny_encoder import ORIGINALS, write_tiny


@pytest.fixture
def corpus(site):
    return publish_corpus(site, ORIGINALS)


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def test_joined_teacher_cosines_equal_the_mean_of_teacher_cosines(site, corpus, tmp_path):
    models = [resolve_model(str(write_tiny(tmp_path / f"model-{seed}", seed=seed))) for seed in range(2)]
    refs = tuple(
        embed.run(
            site,
            {
                "encoder": model,
                "texts": corpus,
                "config": EncoderConfig(model=model.identity, max_length=24, pooling=pooling),
                "precision": "fp32",
            },
        )
        for model, pooling in zip(models, ("mean", "cls"), strict=True)
    )
    store = site.open_store()
    each = [store.scan(ref).collect()["embedding"].to_numpy() for ref in refs]
    joined = store.scan(ref := join_teachers.run(site, {"teachers": refs})).collect()
    assert joined["sentence_id"].is_sorted()
    found = joined["embedding"].to_numpy()
    assert found.shape == (4, sum(vectors.shape[1] for vectors in each))
    np.testing.assert_allclose(cosines(found), np.mean([cosines(vectors) for vectors in each], axis=0), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert store.manifest(ref).figures["dimensions"] == found.shape[1]


def test_zero_teacher_vector_contributes_nothing_to_joined_vectors(site):
    refs = tuple(EmbeddingsRef(key=f"{number:064x}") for number in (1, 2))
    tables = [
        np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32),
        np.array([[0.0, 2.0], [1.0, 0.0]], dtype=np.float32),
    ]
    for ref, vectors in zip(refs, tables, strict=True):
        with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
            draft.write(pl.DataFrame({"sentence_id": pl.Series([1, 2], dtype=pl.UInt64), "embedding": vectors}))
            draft.note({MADE: {}})
    joined = site.open_store().scan(join_teachers.run(site, {"teachers": refs})).collect()["embedding"].to_numpy()
    half = np.sqrt(0.5)
    np.testing.assert_allclose(joined, [[0.6 * half, 0.8 * half, 0, half], [0, 0, half, 0]], atol=1e-6)


def test_teacher_uses_the_settings_saved_in_its_folder(site, tmp_path):
    start, folder = write_tiny(tmp_path / "start"), tmp_path / "saved"
    made = EncoderConfig(model="tiny", pooling="cls", normalize=True, max_length=20)
    SentenceEncoder.load(start, made).save(folder)
    bare, saved = (resolve_model(str(place)) for place in (start, folder))
    asked = EncoderConfig(model="teacher", pooling="first-last")
    assert saved_settings(site, bare, asked) == asked
    assert saved_settings(site, saved, asked) == made.model_copy(update={"model": "teacher"})
    assert saved_settings(site, saved, asked.model_copy(update={"max_length": 12})).max_length == 12


def test_queue_larger_than_the_stored_corpus_is_refused(site, corpus):
    check_teaching(site, corpus, (), DistilConfig(queue=4))
    check_teaching(site, corpus, (), DistilConfig())
    check_teaching(site, CorpusRef(key=f"{5:064x}"), (), DistilConfig(queue=5))
    with pytest.raises(TrainingError, match=r"queue is 5, but there are only 4 sentences.* at most 2"):
        check_teaching(site, corpus, (), DistilConfig(queue=5))


def test_teacher_with_custom_code_is_refused(site, tmp_path):
    folder = write_tiny(tmp_path / "teacher")
    ((_, config),) = find_teachers(site, [EncoderConfig(model=str(folder), max_length=24)])
    assert (config.model, config.max_length) == (resolve_model(str(folder)).identity, 24)
    (folder / "modules.json").write_text('[{"type": "theirs.Transformer", "path": ""}]')
    with pytest.raises(EncoderError, match="is custom code, which is never run"):
        find_teachers(site, [EncoderConfig(model=str(folder))])
