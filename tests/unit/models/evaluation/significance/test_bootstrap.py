"""The bootstrap by counts equals the bootstrap by lists, draw by draw."""

import numpy as np
import pytest
import scipy.stats

from bsl.models.evaluation.significance import bootstrap as intervals
from bsl.models.evaluation.significance.bootstrap import (
    pearson_resamples,
    percentile_interval,
    spearman_resamples,
    unit_means,
)


def scores(n, seed=0):
    generator = np.random.default_rng(seed)
    x = np.round(generator.normal(size=n), 1)
    return x, np.round(x + generator.normal(size=n))


def picked(drawn):
    return np.random.Generator(np.random.PCG64(7)).integers(0, drawn, (50, drawn))


@pytest.mark.parametrize("n", [12, 60])
def test_each_resampled_correlation_equals_scipy(n):
    x, y = scores(n)
    order = np.argsort(x, kind="stable")
    ranked = [scipy.stats.spearmanr(x[order][p], y[order][p]).statistic for p in picked(n)]
    np.testing.assert_allclose(spearman_resamples(x, y, resamples=50, seed=7), ranked, rtol=0, atol=1e-12)
    linear = [scipy.stats.pearsonr(x[p], y[p]).statistic for p in picked(n)]
    np.testing.assert_allclose(pearson_resamples(x, y, resamples=50, seed=7), linear, rtol=0, atol=1e-12)


def test_each_draw_of_units_equals_scipy_on_their_pairs():
    x, y = scores(60)
    units = np.arange(60) % 7
    draws = [np.concatenate([np.flatnonzero(units == unit) for unit in drawn]) for drawn in picked(7)]
    for resample, correlation in (
        (spearman_resamples, scipy.stats.spearmanr),
        (pearson_resamples, scipy.stats.pearsonr),
    ):
        expected = [correlation(x[rows], y[rows]).statistic for rows in draws]
        found = resample(x, y, resamples=50, seed=7, unit_N=units)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_draws_depend_on_seed_but_not_on_chunk_size(monkeypatch):
    x, y = scores(30)
    whole = spearman_resamples(x, y, resamples=40, seed=3)
    monkeypatch.setattr(intervals, "CHUNK_CELLS", 100)
    np.testing.assert_array_equal(spearman_resamples(x, y, resamples=40, seed=3), whole)
    assert not np.array_equal(spearman_resamples(x, y, resamples=40, seed=4), whole)


def test_interval_ignores_constant_draws():
    draws = spearman_resamples([0, 0, 1], [0, 1, 1], resamples=200)
    assert np.isnan(draws).any()
    low, high = percentile_interval(draws)
    assert -1 <= low <= high <= 1
    assert all(np.isnan(percentile_interval(np.array([np.nan]))))


@pytest.mark.parametrize("left_out", [0, 99])
def test_draws_stay_aligned_if_a_question_lacks_a_document(left_out):
    gain, unit = np.random.default_rng(3).normal(0, 0.2, 100), np.arange(100)
    kept = unit != left_out
    whole = unit_means(gain[None], unit, resamples=500, seed=7)[:, 0]
    part = unit_means(gain[None, kept], unit[kept], resamples=500, seed=7)[:, 0]
    assert np.corrcoef(whole, part)[0, 1] > 0.97
    assert whole.std() == pytest.approx(gain.std() / 10, rel=0.1)
