"""Alignment, uniformity and effective rank of known point sets; nearest texts by a plain sort."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.geometry import geometry, nearest_of_others
from bsl.models.runtime.rows import unit_vectors

AXES = np.eye(4)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (np.full((20, 8), 3.0), np.full((20, 8), 0.5), (0, 0, 0, 1)),  # collapsed
        # Different axes have distance √2: log exp(−2 · 2); four points span three directions around their mean.
        (AXES, -AXES, (4, -4, 2 * np.sqrt(3) / 4, 3)),
    ],
)
def test_geometry_equals_hand_computed_values(first, second, expected):
    seen = geometry(first, second)
    assert (seen.alignment, seen.uniformity, seen.std, seen.effective_rank) == pytest.approx(expected)


def test_even_spread_has_unit_std_and_full_effective_rank_at_any_scale_of_rows():
    points = np.random.default_rng(0).normal(size=(4000, 16))
    seen = geometry(points, points)
    assert seen.alignment == pytest.approx(0, abs=1e-12)
    assert seen.std == pytest.approx(1, abs=0.01)
    assert 15.9 < seen.effective_rank <= 16
    assert seen.uniformity < -3
    some, scales = points[:30], np.linspace(0.1, 9, 30)[:, None]
    assert geometry(some, some[::-1]).uniformity == pytest.approx(geometry(some * scales, some).uniformity, abs=1e-6)
    assert unit_vectors(np.zeros((1, 3))).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("shapes", "message"), [(((3, 2), (2, 2)), r"shapes \(3, 2\) and \(2, 2\)"), (((1, 2), (1, 2)), "at least 2 rows")]
)
def test_unequal_shapes_and_single_rows_are_rejected(shapes, message):
    with pytest.raises(EvaluationError, match=message):
        geometry(*map(np.ones, shapes))


def test_nearest_equals_a_sort_by_cosine_without_the_own_unit_for_dense_and_sparse_pools():
    generator = np.random.default_rng(1)
    queries, pool = (generator.integers(0, 3, (count, 4)).astype(float) for count in (3, 30))
    pool[7] = 0
    units, own = np.arange(30) // 3, np.array([0, 4, -1])
    expected = []
    for query, unit in zip(queries, own, strict=True):
        norms = np.linalg.norm(pool, axis=1) * np.linalg.norm(query)
        cosines = np.divide(pool @ query, norms, out=np.zeros(30), where=norms > 0).astype(np.float32)
        expected.append(next(place for place in np.argsort(-cosines, kind="stable") if units[place] != unit))
    for form in (np.float32, csr_array):
        assert nearest_of_others(form(queries), form(pool), own, units).tolist() == expected


def test_nearest_row_of_each_unit_comes_nearest_unit_first_and_the_own_unit_last():
    """Regression: the nearest rows could all be of one unit, such as a writer; a draw without it had no neighbour."""
    generator = np.random.default_rng(0)
    vectors, units = generator.normal(size=(30, 4)).astype(np.float32), generator.permutation(30) // 3
    vectors[5] = 0  # as near to all
    unit = unit_vectors(vectors.astype(np.float64))
    cosines = np.where(units[:, None] == units, -np.inf, unit @ unit.T).astype(np.float32)
    expected = []
    for row in cosines:
        best = [max(np.flatnonzero(units == name), key=row.__getitem__) for name in range(10)]
        expected.append(sorted(best, key=row.__getitem__, reverse=True))
    for count in (1, 5, 10, 40):
        found = nearest_of_others(vectors, vectors, units, units, count=count)
        assert found[:, :9].tolist() == [names[: min(count, 9)] for names in expected]
        assert (units[found[:, 9:]] == units[:, None]).all()
    alone = np.arange(30)
    (nearest,) = nearest_of_others(vectors, vectors, alone, alone, count=1).T
    assert nearest.tolist() == nearest_of_others(vectors, vectors, alone, alone).tolist()
