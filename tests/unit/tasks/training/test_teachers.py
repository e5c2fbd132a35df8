"""Vectors of several teachers are joined; teachers that cannot teach are refused."""

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError, TrainingError
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.training.teachers import check_teaching, find_teachers, join_teachers
from tests.corpora import publish_corpus, publish_vectors
from tests.tiny_encoder import ORIGINALS, write_tiny


@pytest.fixture
def corpus(site):
    return publish_corpus(site, ORIGINALS)


def test_joined_vectors_are_unit_vectors_of_all_teachers_and_a_zero_vector_contributes_nothing(site):
    refs, texts, store = [], pl.Series("text", ORIGINALS[:2]), site.open_store()
    for digit, rows in (("1", [[3.0, 4.0], [0.0, 0.0]]), ("2", [[0.0, 2.0], [1.0, 0.0]])):
        refs.append(publish_vectors(site, texts, np.array(rows), digit))
    ref = join_teachers(site, teachers=tuple(refs))
    table = store.scan(ref).collect()
    assert table["sentence_id"].is_sorted()
    assert store.manifest(ref).figures["dimensions"] == 4
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
