"""Dense and sparse vectors of an artifact are looked up by sentence, compared, and used as features."""

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import cosine_scores, sparse_cosines
from bsl.models.evaluation.probe import search
from bsl.models.evaluation.probe.problem import used_columns
from bsl.storage.artifacts.refs import EmbeddingsRef
from bsl.storage.errors import SourceError
from bsl.tasks.embedding.vectors import SPARSE, open_vectors, sparse_table
from tests.corpora import publish, publish_vectors

TEXTS = ["a cat", "a dog", "nothing known", "a cat and a dog"]
MATRIX = np.array([[1, 0, 2, 0, 0], [1, 3, 0, 0, 0], [0, 0, 0, 0, 0], [2, 3, 2, 0, 1]], dtype=np.float64)
PAIRS = pl.DataFrame({"sentence1": TEXTS, "sentence2": TEXTS[1:] + TEXTS[:1]})


@pytest.fixture
def opened(site):
    """Open the same vectors from a dense and a sparse artifact."""
    dense, sparse = publish_vectors(site, pl.Series("text", TEXTS), MATRIX), EmbeddingsRef(key=64 * "1")
    ids = pl.DataFrame({"text": TEXTS}).select(sentence_ids(pl.col("text"))).to_series()
    publish(site.open_store(), sparse, sparse_table(ids, csr_array(MATRIX)), SPARSE)
    return [open_vectors(site.open_store(), ref) for ref in (dense, sparse)]


def test_dense_and_sparse_vectors_have_the_same_cosines(opened):
    dense, sparse = opened
    assert (dense.is_sparse, sparse.is_sparse) == (False, True)
    np.testing.assert_allclose(sparse.cosines(PAIRS, "x"), dense.cosines(PAIRS, "x"), atol=1e-12)
    np.testing.assert_allclose(sparse.cosines(PAIRS, "x"), cosine_scores(MATRIX, np.roll(MATRIX, -1, 0)), atol=1e-12)
    assert sparse.cosines(PAIRS, "x")[1] == 0  # a sentence without any known word


def test_features_equal_the_dense_or_sparse_vectors_and_missing_ones_are_named_by_row(opened):
    for vectors in opened:
        features = vectors.features(pl.Series(TEXTS[:2]), "x")
        assert (features.toarray() if vectors.is_sparse else features).tolist() == MATRIX[:2].tolist()
        with pytest.raises(SourceError, match="mr all: the sentence of row 2 has no vector in embeddings/"):
            vectors.features(pl.Series(["a cat", "a cow"]), "mr all")


def test_used_columns_drops_all_zero_columns():
    assert used_columns(csr_array(MATRIX[:2])).toarray().tolist() == MATRIX[:2, :3].tolist()
    assert used_columns(csr_array((3, 5))).toarray().tolist() == [[0.0]] * 3


def test_heaviest_columns_returns_columns_with_the_largest_sums(monkeypatch):
    monkeypatch.setattr(search, "MOST_COLUMNS", 2)
    heaviest = search.heaviest_columns(csr_array(MATRIX))
    assert heaviest.tolist() == MATRIX[:, [0, 1]].tolist()  # sums 4, 6, 4, 0, 1; of equals, the first


def test_sparse_cosines_refuse_mismatched_shapes_and_non_finite_values():
    with pytest.raises(EvaluationError, match=r"shapes \(4, 5\) and \(2, 5\)"):
        sparse_cosines(csr_array(MATRIX), csr_array(MATRIX[:2]))
    with pytest.raises(EvaluationError, match="not finite"):
        sparse_cosines(csr_array(MATRIX), csr_array(np.where(MATRIX == 3, np.nan, MATRIX)))
