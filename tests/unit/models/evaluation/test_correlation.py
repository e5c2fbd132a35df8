"""Cosine, Spearman and Pearson equal scipy, with clear errors for undefined input."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.feature_selection import r_regression
from sklearn.metrics.pairwise import paired_cosine_distances

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import average_ranks, cosine_scores, pearson, spearman

ties = st.integers(2, 40).flatmap(lambda n: hnp.arrays(np.float64, (2, n), elements=st.integers(0, 6).map(float)))


@given(ties)
def test_ranks_and_correlations_equal_scipy_with_ties(scores):
    x, y = scores
    assume(np.ptp(x) > 0)
    assume(np.ptp(y) > 0)
    np.testing.assert_array_equal(average_ranks(x), scipy.stats.rankdata(x))
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-12)


@given(hnp.arrays(np.float32, (2, 5, 7), elements=st.integers(-4, 4).map(float)))
def test_cosine_and_pearson_equal_scikit_learn(vectors):
    a, b = vectors
    assume((np.abs(a).sum(axis=1) > 0).all())
    assume((np.abs(b).sum(axis=1) > 0).all())
    cosine = cosine_scores(a, b)
    np.testing.assert_allclose(cosine, 1 - paired_cosine_distances(a.astype(float), b.astype(float)), atol=1e-12)
    gold = np.array([0.0, 1.0, 1.0, 3.0, 5.0])
    assume(np.ptp(cosine) > 1e-6)
    assert pearson(cosine, gold) == pytest.approx(r_regression(cosine[:, None], gold)[0], abs=1e-9)


def test_spearman_of_a_million_pairs_equals_scipy():
    generator = np.random.default_rng(0)
    x = generator.normal(size=1_000_000)
    y = np.round(x + generator.normal(size=len(x)), 2)
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)


@given(ties, st.floats(0.1, 10), st.floats(-5, 5))
def test_spearman_ignores_monotone_and_pearson_linear_changes(scores, scale, shift):
    x, y = scores
    assume(np.ptp(x) > 0)
    assume(np.ptp(y) > 0)
    assert spearman(np.exp(x), y) == pytest.approx(spearman(x, y), abs=1e-12)
    assert pearson(scale * x + shift, y) == pytest.approx(pearson(x, y), abs=1e-9)
    assert spearman(x, x) == pytest.approx(1)
    assert pearson(x, -x) == pytest.approx(-1)


def test_pearson_of_tiny_scores_does_not_underflow():
    assert pearson([1e-200, 2e-200, 4e-200], [1, 2, 4]) == pytest.approx(1)


@pytest.mark.parametrize("correlation", [spearman, pearson])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2, float("nan")], [1, 2, 3], "first score in row 2 is not finite"),
        ([1, 2, 3], [1, None, 3], "second score in row 1 is not finite"),
        ([1, 1, 1], [1, 2, 3], "all 3 values of the first scores are 1.0"),
        ([1, 2], [5, 5], "all 2 values of the second scores are 5.0"),
        ([1], [2], "1 scored pairs, expected at least 2"),
        ([], [], "0 scored pairs"),
        ([1, 2, 3], [1, 2], "expected two lists of equal length"),
    ],
)
def test_undefined_correlation_error_names_the_cause(correlation, x, y, message):
    with pytest.raises(EvaluationError, match=message):
        correlation(x, y)


def test_cosine_equals_hand_computed_values():
    a = np.array([[1, 0], [1, 1], [2, 0], [0, 0]], dtype=np.float32)
    b = np.array([[0, 3], [2, 2], [-1, 0], [1, 1]], dtype=np.float32)
    np.testing.assert_allclose(cosine_scores(a, b), [0, 1, -1, 0], atol=1e-15)


def test_cosine_error_names_non_finite_row_or_shapes():
    a, b = np.ones((3, 2), dtype=np.float32), np.ones((3, 2), dtype=np.float32)
    b[2, 1] = np.nan
    with pytest.raises(EvaluationError, match="second vector of the pair in row 2 is not finite"):
        cosine_scores(a, b)
    with pytest.raises(EvaluationError, match=r"shapes \(3, 2\) and \(2, 2\)"):
        cosine_scores(a, a[:2])
