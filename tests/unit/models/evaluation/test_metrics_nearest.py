"""Nearest texts of a pool equal a plain sort by cosine, for dense and sparse vectors."""

import numpy as np
from scipy.sparse import csr_array

from bsl.models.evaluation.metrics import nearest


def test_nearest_sorts_dense_and_sparse_pools_by_cosine():
    generator = np.random.default_rng(1)
    queries, pool = (generator.integers(0, 3, (count, 4)).astype(float) for count in (3, 30))
    pool[7] = 0
    expected = []
    for query in queries:
        norms = np.linalg.norm(pool, axis=1) * np.linalg.norm(query)
        cosines = np.divide(pool @ query, norms, out=np.zeros(30), where=norms > 0).astype(np.float32)
        expected.append(sorted(range(30), key=lambda place, of=cosines: -of[place])[:6])
    for form in (np.float32, csr_array):
        found = list(nearest(form(queries), form(pool), 6))
        assert [numbers.tolist() for numbers, _ in found] == expected
        assert all((np.diff(cosines) <= 0).all() for _, cosines in found)
    assert len(next(nearest(queries, pool, 100))[0]) == 30
