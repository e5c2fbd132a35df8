"""Cosine, Spearman and Pearson equal scipy, with clear errors for undefined input."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import paired_cosine_distances

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import average_ranks, cosine_scores, pearson, sparse_cosines, spearman

ties = st.integers(2, 40).flatmap(lambda n: hnp.arrays(np.float64, (2, n), elements=st.integers(0, 6).map(float)))


@given(ties, st.floats(0.1, 10), st.floats(-5, 5))
def test_ranks_and_correlations_equal_scipy_with_ties(scores, scale, shift):
    x, y = scores
    assume(np.ptp(x) > 0)
    assume(np.ptp(y) > 0)
    np.testing.assert_array_equal(average_ranks(x), scipy.stats.rankdata(x))
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-12)
    assert pearson(scale * x + shift, y) == pytest.approx(pearson(x, y), abs=1e-9)


@given(hnp.arrays(np.float32, (2, 5, 7), elements=st.integers(-4, 4).map(float)))
def test_cosine_equals_scikit_learn(vectors):
    a, b = vectors
    assume((np.abs(vectors).sum(axis=2) > 0).all())
    expected = 1 - paired_cosine_distances(a.astype(float), b.astype(float))
    np.testing.assert_allclose(cosine_scores(a, b), expected, atol=1e-12)


def test_equal_vectors_have_equal_cosines_so_that_they_tie():
    """Regression: half of them had 1 − 2⁻⁵³, which moved the SMTeuroparl pairs of STS 2012 by up to 0.09 points."""
    vectors = np.random.default_rng(0).normal(size=(1000, 384)).astype(np.float32)
    assert set(cosine_scores(vectors, vectors)) == {1.0}
    assert set(cosine_scores(vectors, -3 * vectors)) == {-1.0}
    unit = csr_array(vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True))  # as those of TF-IDF
    assert set(sparse_cosines(unit, unit)) == {1.0}


def test_cosines_of_sparse_vectors_equal_those_of_dense_ones():
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 3, (2, 30, 4)).astype(np.float32)
    a[3], b[4] = 0, 0
    np.testing.assert_allclose(sparse_cosines(csr_array(a), csr_array(b)), cosine_scores(a, b), atol=1e-12)


def test_pearson_of_tiny_scores_does_not_underflow_and_a_zero_vector_has_cosine_0():
    assert pearson([1e-200, 2e-200, 4e-200], [1, 2, 4]) == pytest.approx(1)
    assert cosine_scores(np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)).tolist() == [0]


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


def test_cosine_error_names_non_finite_row_or_shapes():
    a, b = np.ones((3, 2), dtype=np.float32), np.ones((3, 2), dtype=np.float32)
    b[2, 1] = np.nan
    with pytest.raises(EvaluationError, match="second vector of the pair in row 2 is not finite"):
        cosine_scores(a, b)
    with pytest.raises(EvaluationError, match=r"shapes \(3, 2\) and \(2, 2\)"):
        cosine_scores(a, a[:2])
