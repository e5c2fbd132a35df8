"""Nearest neighbours equal a sort of all products, for any block size."""

import numpy as np
import pytest

from bsl.models.runtime.rows import unit_vectors
from bsl.models.serving import nearest_neighbors as room
from bsl.models.serving.nearest_neighbors import nearest, nearest_pairs


@pytest.fixture(params=[(1024, 1 << 16), (3, 4)], ids=["one block", "blocks"])
def vectors(request, monkeypatch):
    monkeypatch.setattr(room, "ROWS", request.param[0])
    monkeypatch.setattr(room, "COLUMNS", request.param[1])
    return unit_vectors(np.random.default_rng(0).standard_normal((11, 5)).astype(np.float32))


def test_nearest_matches_a_sort_of_all_products_also_of_few_targets_or_no_queries(vectors):
    scores, rows = nearest(vectors[:7], vectors, 3)
    products = vectors[:7] @ vectors.T
    np.testing.assert_array_equal(rows, np.argsort(-products, axis=1)[:, :3])
    np.testing.assert_allclose(scores, -np.sort(-products, axis=1)[:, :3], rtol=1e-6)
    assert nearest(vectors[:2], vectors[:3], 9)[0].shape == (2, 3)
    scores, rows = nearest(vectors[:0], vectors, 3)
    assert (scores.shape, rows.shape, scores.dtype, rows.dtype) == ((0, 3), (0, 3), np.float32, np.int64)


def test_nearest_pairs_match_a_sort_of_all_products_above_the_threshold(vectors):
    scores, rows = nearest_pairs(vectors, 6)
    products = vectors @ vectors.T
    first, second = np.triu_indices(len(vectors), 1)
    order = np.argsort(-products[first, second])[:6]
    assert rows.tolist() == np.stack([first, second], axis=1)[order].tolist()
    np.testing.assert_allclose(scores, products[first, second][order], rtol=1e-6)
    scores, rows = nearest_pairs(vectors, 100, above=0.5)
    assert len(rows) == int((products[first, second] > 0.5).sum())
    assert (scores > 0.5).all()
