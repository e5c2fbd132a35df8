"""Alignment, uniformity and effective rank of known point sets."""

import numpy as np
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.metrics import geometry
from bsl.models.runtime.rows import unit_vectors


def test_collapsed_embeddings_have_zero_std_and_rank_one():
    seen = geometry(np.full((20, 8), 3.0), np.full((20, 8), 0.5))
    assert (seen.alignment, seen.uniformity, seen.std, seen.effective_rank) == pytest.approx((0, 0, 0, 1))


def test_opposite_axes_have_hand_computed_geometry():
    axes = np.eye(4)
    seen = geometry(axes, -axes)
    assert seen.alignment == pytest.approx(4)
    assert seen.uniformity == pytest.approx(-4)  # different axes have distance √2: log exp(−2 · 2)
    assert seen.effective_rank == pytest.approx(3)  # four points span three directions around their mean
    assert seen.std == pytest.approx(2 * np.sqrt(3) / 4)


def test_even_spread_has_unit_std_and_full_effective_rank():
    points = np.random.default_rng(0).normal(size=(4000, 16))
    seen = geometry(points, points)
    assert seen.alignment == pytest.approx(0, abs=1e-12)
    assert seen.std == pytest.approx(1, abs=0.01)
    assert 15.9 < seen.effective_rank <= 16
    assert seen.uniformity < -3


def test_geometry_ignores_row_scale_and_zero_rows_stay_zero():
    points = np.random.default_rng(1).normal(size=(30, 5)).astype(np.float32)
    scales = np.linspace(0.1, 9, 30)[:, None].astype(np.float32)
    assert geometry(points, points[::-1]).uniformity == pytest.approx(
        geometry(points * scales, points).uniformity, abs=1e-6
    )
    assert unit_vectors(np.zeros((1, 3))).tolist() == [[0, 0, 0]]


def test_unequal_shapes_and_single_rows_are_rejected():
    with pytest.raises(EvaluationError, match=r"shapes \(3, 2\) and \(2, 2\)"):
        geometry(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(EvaluationError, match="at least 2 rows"):
        geometry(np.ones((1, 2)), np.ones((1, 2)))
