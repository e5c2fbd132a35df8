"""Nearest texts of a pool equal a plain sort by cosine, for dense and sparse vectors."""

import numpy as np
from scipy.sparse import csr_array

from bsl.models.evaluation.metrics import nearest_of_others


def test_nearest_equals_a_sort_by_cosine_without_the_own_unit_for_dense_and_sparse_pools():
    generator = np.random.default_rng(1)
    queries, pool = (generator.integers(0, 3, (count, 4)).astype(float) for count in (3, 30))
    pool[7] = 0
    units, own = np.arange(30) // 3, np.array([0, 4, -1])
    expected = []
    for query, unit in zip(queries, own, strict=True):
        norms = np.linalg.norm(pool, axis=1) * np.linalg.norm(query)
        cosines = np.divide(pool @ query, norms, out=np.zeros(30), where=norms > 0).astype(np.float32)
        by_cosine = sorted(range(30), key=lambda place, of=cosines: -of[place])
        expected.append(next(place for place in by_cosine if units[place] != unit))
    for form in (np.float32, csr_array):
        assert nearest_of_others(form(queries), form(pool), own, units).tolist() == expected
