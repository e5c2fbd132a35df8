"""Hierarchical bootstrap over seeds and pairs: figures, coverage of the intervals, Holm's correction."""

import math

import numpy as np
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import spearman
from bsl.models.evaluation.significance.bootstrap import spearman_resamples
from bsl.models.evaluation.significance.hierarchical import (
    BootstrapDraws,
    difference_of,
    draws_of,
    figure_of,
    holm,
    mean_draws,
)
from bsl.models.evaluation.significance.paired import drawn_difference


@pytest.fixture(scope="module")
def pairs():
    """Return gold scores and the cosines of two methods with three seeds each; the second method is far better."""
    generator = np.random.default_rng(5)
    gold = generator.normal(size=300)
    return gold, *(np.stack([gold + noise * generator.normal(size=300) for _ in range(3)]) for noise in (2.0, 1.0))


def test_draws_contain_score_and_resamples_of_each_seed(pairs):
    gold, worse, _ = pairs
    draws = draws_of(gold, worse, resamples=200, seed=3)
    assert draws.figures == pytest.approx([spearman(row, gold) for row in worse])
    assert np.array_equal(draws.draws[:, 1], spearman_resamples(gold, worse[1], resamples=200, seed=3))


def test_one_seed_difference_equals_paired_bootstrap(pairs):
    gold, worse, better = pairs
    draws = [spearman_resamples(gold, rows[0], resamples=300, seed=2) for rows in (worse, better)]
    value = spearman(better[0], gold) - spearman(worse[0], gold)
    first, second = (draws_of(gold, rows[:1], resamples=300, seed=2) for rows in (worse, better))
    assert difference_of(first, second) == drawn_difference(value, draws[1] - draws[0])
    assert figure_of(first).sd is None


def test_mean_and_sd_over_seeds_average_the_sets_first():
    sets = [
        BootstrapDraws(np.array([0.5, 0.7]), np.full((100, 2), 0.6)),
        BootstrapDraws(np.array([0.1, 0.5]), np.full((100, 2), 0.3)),
    ]
    figure = figure_of(mean_draws(sets))
    assert figure.mean == pytest.approx(0.45)
    assert figure.sd == pytest.approx(np.std([0.3, 0.6], ddof=1))
    assert (figure.ci_low, figure.ci_high) == pytest.approx((0.45, 0.45))


def test_interval_covers_the_standard_error_over_seeds():
    """Without variance of pairs the variance is s² / S, although only three seeds are drawn from."""
    by_seed = np.array([0.50, 0.53, 0.61])
    draws = BootstrapDraws(by_seed, np.tile(by_seed, (20_000, 1)))
    low, high = (figure_of(draws).ci_low, figure_of(draws).ci_high)
    middle, error = by_seed.mean(), by_seed.std(ddof=1) / math.sqrt(3)
    assert low < middle - error < middle + error < high
    stretched = difference_of(BootstrapDraws(np.zeros(1), np.zeros((20_000, 1))), draws)
    assert stretched.ci_high - stretched.ci_low > 2 * error


def test_hierarchical_intervals_cover_zero_where_pair_intervals_do_not():
    """Two equal methods whose seeds vary more than their pairs: pairs alone favour the luckier seeds."""
    generator = np.random.default_rng(11)
    wrong = {"both": 0, "pairs": 0}
    for trial in range(60):
        gold = generator.normal(size=400)
        noise = generator.uniform(0.6, 1.8, size=(2, 4))
        methods = [
            np.stack([gold + scale * generator.normal(size=400) for scale in noise[method]]) for method in range(2)
        ]
        first, second = (draws_of(gold, rows, resamples=200, seed=trial) for rows in methods)
        both = difference_of(first, second, seed=trial)
        alone = difference_of(*(draws_of(gold, rows[:1], resamples=200, seed=trial) for rows in methods))
        wrong["both"] += not both.ci_low <= 0 <= both.ci_high
        wrong["pairs"] += not alone.ci_low <= 0 <= alone.ci_high
    assert wrong["pairs"] > 30
    assert wrong["both"] <= 9  # with four seeds, a percentile interval is still somewhat narrower than 95 %


def test_true_difference_is_significant(pairs):
    gold, worse, better = pairs
    first, second = (draws_of(gold, rows, resamples=300) for rows in (worse, better))
    found = difference_of(first, second)
    assert found.ci_low > 0
    assert found.p_value < 0.05
    assert difference_of(second, first).value == pytest.approx(-found.value)


def test_different_numbers_of_seeds_are_rejected(pairs):
    gold, worse, better = pairs
    three, two = draws_of(gold, worse, resamples=100), draws_of(gold, better[:2], resamples=100)
    with pytest.raises(EvaluationError, match=r"sets with \[2, 3\] seeds, expected the same number"):
        mean_draws([three, two])


def test_holm_correction_equals_hand_computed_p_values():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
