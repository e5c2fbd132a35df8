"""The paired bootstrap equals one by lists, and detects differences that single intervals hide."""

import numpy as np
import pytest
import scipy.stats

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.significance.bootstrap import percentile_interval, spearman_resamples
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of


def paired_difference(first, second, gold, **drawn):
    """Return the difference of two encoders of one seed each."""
    return difference_of(*(draws_of(gold, cosines[None], **drawn) for cosines in (first, second)))


def cosines(n=400, seed=0):
    generator = np.random.default_rng(seed)
    gold = np.round(generator.uniform(0, 5, n), 1)
    shared = gold + generator.normal(0, 1.5, n)
    return gold, shared, shared + generator.normal(0, 0.3, n) + 0.15 * gold


def test_paired_difference_equals_bootstrap_on_shared_draws():
    gold, first, second = cosines(60)
    order = np.argsort(gold, kind="stable")
    g, a, b = gold[order], first[order], second[order]
    picks = np.random.Generator(np.random.PCG64(5)).integers(0, 60, (200, 60))
    by_list = [scipy.stats.spearmanr(g[p], b[p]).statistic - scipy.stats.spearmanr(g[p], a[p]).statistic for p in picks]
    found = paired_difference(first, second, gold, resamples=200, seed=5)
    assert (found.ci_low, found.ci_high) == pytest.approx(percentile_interval(np.array(by_list)), abs=1e-12)
    far = min(np.sum(np.array(by_list) <= 0), np.sum(np.array(by_list) >= 0))
    assert found.p_value == pytest.approx(min(1, 2 * (far + 1) / 201))
    expected = scipy.stats.spearmanr(second, gold).statistic - scipy.stats.spearmanr(first, gold).statistic
    assert found.value == pytest.approx(expected)


def test_small_gain_is_significant_though_single_intervals_overlap():
    gold, first, second = cosines()
    found = paired_difference(first, second, gold)
    assert 0 < found.ci_low < found.value < found.ci_high
    assert found.p_value < 0.01
    assert (
        percentile_interval(spearman_resamples(gold, first))[1]
        > percentile_interval(spearman_resamples(gold, second))[0]
    )


def test_swapped_encoders_negate_difference_and_equal_ones_give_zero():
    gold, first, second = cosines(100)
    there = paired_difference(first, second, gold, resamples=300)
    back = paired_difference(second, first, gold, resamples=300)
    assert (back.value, back.ci_low, back.p_value) == pytest.approx((-there.value, -there.ci_high, there.p_value))
    same = paired_difference(first, first, gold, resamples=300)
    assert (same.value, same.ci_low, same.ci_high, same.p_value) == (0, 0, 0, 1)


def test_equal_encoders_are_rarely_significantly_different():
    """Two equally good encoders: p < 0.05 in about one case of twenty."""
    alarms = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        gold = generator.normal(size=150)
        one, two = (gold + generator.normal(size=150) for _ in range(2))
        alarms += paired_difference(one, two, gold, resamples=200, seed=seed).p_value < 0.05
    assert alarms <= 12


def test_non_finite_score_error_names_its_row():
    with pytest.raises(EvaluationError, match="second score in row 1 is not finite"):
        paired_difference(np.array([1.0, 2.0]), np.array([1.0, np.nan]), np.array([1.0, 2.0]))
