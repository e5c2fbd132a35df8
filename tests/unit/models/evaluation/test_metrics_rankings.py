"""Ranking measures equal hand computation and scikit-learn; bootstrap draws equal draws made one by one."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score, ndcg_score

from models.errors import EvaluationError
from models.evaluation.metrics import (
    average_precision,
    found_precision,
    gain,
    nearest,
    precision_at,
    ranked,
    reciprocal_rank,
    tied_precision,
    trec_precision,
    v_measure,
)
from models.evaluation.significance.bootstrap import mean_resamples, precision_resamples


def test_ranking_measures_equal_hand_computed_values():
    """Answers are at ranks 2 and 4 of five; a third answer was not found."""
    ranking = ranked([0.1, 0.9, 0.5, 0.8, 0.3], [False, False, False, True, True], 3)
    assert ranking.right.tolist() == [False, True, False, True, False]
    assert found_precision(ranking) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert tied_precision(ranking) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert trec_precision(ranking) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert reciprocal_rank(ranking) == 0.5
    assert [precision_at(ranking, places) for places in (1, 2, 5, 9)] == [0, 0.5, 0.4, 0.4]
    found, best = 1 / np.log2(3) + 1 / np.log2(5), 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert gain(ranking) == pytest.approx(found / best)
    assert gain(ranking, 2) == pytest.approx(1 / np.log2(3) / (1 + 1 / np.log2(3)))


def test_ties_keep_input_order_and_no_answers_score_zero():
    assert ranked([0.5, 0.5, 0.7], [True, False, False], 1).right.tolist() == [False, True, False]
    nothing = ranked([0.5, 0.1], [False, False], 2)
    measures = (found_precision, trec_precision, tied_precision, reciprocal_rank, gain)
    assert [measure(nothing) for measure in measures] == [0] * 5


@pytest.mark.parametrize("levels", [5, 1000])
def test_average_precision_and_ndcg_equal_scikit_learn(levels):
    generator = np.random.default_rng(levels)
    scores, right = generator.integers(0, levels, 200) / levels, generator.random(200) < 0.2
    assert average_precision(scores, right) == pytest.approx(average_precision_score(right, scores), abs=1e-12)
    ranking = ranked(np.arange(200.0), right, int(right.sum()))
    assert gain(ranking, 10) == pytest.approx(ndcg_score([right], [np.arange(200.0)], k=10), abs=1e-12)


def test_bootstrap_draws_equal_resampling_of_lists():
    generator = np.random.default_rng(0)
    scores, right = generator.integers(0, 12, 40) / 12, generator.random(40) < 0.4
    picks = np.random.Generator(np.random.PCG64(3)).integers(0, 40, (100, 40))
    expected = [average_precision_score(right[pick], scores[pick]) for pick in picks]
    assert precision_resamples(scores, right, resamples=100, seed=3) == pytest.approx(expected, abs=1e-12)
    assert mean_resamples(scores, resamples=100, seed=3) == pytest.approx([scores[pick].mean() for pick in picks])
    assert np.isnan(precision_resamples([0.1, 0.2], [False, False], resamples=100)).all()


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


def test_sparse_v_measure_equals_dense_and_needs_two_labels():
    vectors = np.repeat(np.eye(3), 4, axis=0)
    labels = ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert v_measure(vectors, labels, 0) == v_measure(csr_array(vectors), labels, 0) == pytest.approx(1)
    assert v_measure(vectors, labels[::2] * 2, 0) < 0.9
    with pytest.raises(EvaluationError, match="4 texts with 1 label, expected at least two"):
        v_measure(vectors[:4], labels[:4], 0)
