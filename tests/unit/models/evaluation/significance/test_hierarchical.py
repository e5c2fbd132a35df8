"""Paired bootstrap over pairs, Student's and Welch's t over seeds, Holm's correction."""

import numpy as np
import pytest
import scipy.stats

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.significance.bootstrap import percentile_interval, spearman_resamples
from bsl.models.evaluation.significance.hierarchical import (
    BootstrapDraws,
    difference_of,
    draws_of,
    figure_of,
    holm,
    mean_draws,
)


@pytest.fixture(scope="module")
def pairs():
    """Return gold scores and the cosines of two methods with three seeds each; the second method is far better."""
    generator = np.random.default_rng(5)
    gold = generator.normal(size=300)
    return gold, *(np.stack([gold + noise * generator.normal(size=300) for _ in range(3)]) for noise in (2.0, 1.0))


def compared(gold, *methods, seed=0, **options):
    return difference_of(*(draws_of(gold, np.atleast_2d(rows), seed=seed, **options) for rows in methods), seed=seed)


def test_one_seed_difference_equals_a_paired_bootstrap_by_lists(pairs):
    gold, a, b = pairs[0][:60], pairs[1][0, :60], pairs[2][0, :60]
    order = np.argsort(gold, kind="stable")
    picks = order[np.random.Generator(np.random.PCG64(5)).integers(0, 60, (200, 60))]
    by_list = np.array(
        [scipy.stats.spearmanr(gold[p], b[p]).statistic - scipy.stats.spearmanr(gold[p], a[p]).statistic for p in picks]
    )
    found, back = compared(gold, a, b, resamples=200, seed=5), compared(gold, b, a, resamples=200, seed=5)
    assert (found.ci_low, found.ci_high) == pytest.approx(percentile_interval(by_list), abs=1e-12)
    far = min(np.sum(by_list <= 0), np.sum(by_list >= 0))
    assert found.p_value == pytest.approx(min(1, 2 * (far + 1) / 201))
    expected = scipy.stats.spearmanr(b, gold).statistic - scipy.stats.spearmanr(a, gold).statistic
    assert found.value == pytest.approx(expected)
    assert (back.value, back.ci_low, back.p_value) == pytest.approx((-found.value, -found.ci_high, found.p_value))
    same = compared(gold, a, a, resamples=200)
    assert (same.value, same.ci_low, same.ci_high, same.p_value) == (0, 0, 0, 1)


def test_draws_contain_score_and_resamples_of_each_seed(pairs):
    gold, worse, better = pairs
    draws = draws_of(gold, worse, resamples=200, seed=3)
    assert draws.figures == pytest.approx([scipy.stats.spearmanr(row, gold).statistic for row in worse])
    assert np.array_equal(draws.draws[:, 1], spearman_resamples(gold, worse[1], resamples=200, seed=3))
    found = compared(gold, worse, better, resamples=200)
    assert found.ci_low > 0
    assert found.p_value < 0.05


def test_mean_and_sd_over_seeds_average_the_sets_first(pairs):
    sets = [
        BootstrapDraws(np.array([0.5, 0.7]), np.full((100, 2), 0.6)),
        BootstrapDraws(np.array([0.1, 0.5]), np.full((100, 2), 0.3)),
    ]
    figure = figure_of(mean_draws(sets))
    assert figure.mean == pytest.approx(0.45)
    assert figure.sd == pytest.approx(np.std([0.3, 0.6], ddof=1))
    assert mean_draws(sets).draws == pytest.approx(np.full((100, 2), 0.45))
    three = draws_of(*pairs[:2], resamples=100)
    with pytest.raises(EvaluationError, match=r"sets with \[2, 3\] seeds, expected the same number"):
        mean_draws([three, sets[0]])


def test_intervals_over_seeds_are_those_of_students_and_welchs_t():
    """Resampled seeds give intervals that are far too narrow: one of eight equal methods is called different."""
    first, second = (
        BootstrapDraws(np.array(seeds), np.tile(seeds, (20_000, 1))) for seeds in ([0.50, 0.53, 0.61], [0.70, 0.71])
    )
    figure, error = figure_of(first), scipy.stats.sem(first.figures)
    assert (figure.ci_low, figure.ci_high) == pytest.approx(
        scipy.stats.t.interval(0.95, 2, first.figures.mean(), error), rel=1e-3
    )
    welch = scipy.stats.ttest_ind(second.figures, first.figures, equal_var=False)
    found, expected = difference_of(first, second), welch.confidence_interval()
    assert (found.ci_low, found.ci_high) == pytest.approx((expected.low, expected.high), rel=1e-2)
    assert found.p_value == pytest.approx(welch.pvalue, rel=1e-2)
    alone = BootstrapDraws(np.zeros(1), np.zeros((20_000, 1)))  # a method without seeds, such as TF-IDF
    assert difference_of(alone, first).ci_low == pytest.approx(figure.ci_low, abs=1e-3)


def test_holm_correction_equals_hand_computed_p_values():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
