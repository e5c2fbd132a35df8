"""Compare methods over training seeds and test pairs: bootstrap draws of pairs, Student's t over seeds.

A score varies with the pairs of the test set and with the seed of training. An interval over pairs only would mistake
one lucky seed for a better method. So a draw is the mean over seeds on resampled pairs, plus a deviation of the mean
over seeds.

The deviations are those of Student's t, for differences with Welch's (1947) degrees of freedom, since a few seeds
cannot be resampled: without variance of pairs, intervals from two resampled seeds cover the mean in 63 of 100 cases,
from three in 78, even if scaled to the right variance. With one seed the interval covers the pairs only.

Shapes: R draws, S seeds, N pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import spearman
from bsl.models.evaluation.significance.bootstrap import percentile_interval, spearman_resamples
from bsl.models.evaluation.significance.paired import Difference, drawn_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class BootstrapDraws:
    """A method's scores and bootstrap draws on one set.

    Attributes:
        figures: (S,) score of each seed on all pairs.
        draws: (R, S) score of each seed on each draw of pairs, with the same draws for all seeds.
    """

    figures: NDArray[np.float64]
    draws: NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A method's score over seeds, on one set or as the mean of several.

    Attributes:
        mean: Mean over seeds.
        sd: Standard deviation over seeds (n − 1); None with one seed.
        ci_low: Lower end of the 95 % percentile interval over seeds and pairs.
        ci_high: Upper end.
        seeds: Number of seeds.
    """

    mean: float
    sd: float | None
    ci_low: float
    ci_high: float
    seeds: int


def draws_of(
    gold_N: NDArray[np.float64],
    cosines_SN: NDArray[np.float64],
    *,
    resamples: int = 1000,
    seed: int = 0,
    unit_N: NDArray[np.int64] | None = None,
) -> BootstrapDraws:
    """Return Spearman's ρ of a method's encoders on bootstrap draws of one set's pairs.

    Args:
        gold_N: Gold scores.
        cosines_SN: Cosines, one row per seed.
        resamples: R.
        seed: Seed of the draws; use the same seed for methods that are compared.
        unit_N: Number from 0 of each pair's unit, such as its writer, to draw units; None draws pairs.

    Raises:
        EvaluationError: As `bsl.models.evaluation.correlation.spearman`.
    """
    # Gold is the first argument, since its order determines the draws: all encoders get the same ones.
    columns = [
        spearman_resamples(gold_N, cosines, resamples=resamples, seed=seed, unit_N=unit_N) for cosines in cosines_SN
    ]
    figures = [spearman(cosines, gold_N) for cosines in cosines_SN]
    return BootstrapDraws(np.array(figures), np.stack(columns, axis=1))


def mean_draws(sets: Sequence[BootstrapDraws]) -> BootstrapDraws:
    """Return a method's mean over sets, which must have the same seeds in the same order.

    Raises:
        EvaluationError: Sets differ in their number of seeds.
    """
    counts = {len(draws.figures) for draws in sets}
    if len(counts) != 1:
        raise EvaluationError(
            f"sets with {sorted(counts)} seeds, expected the same number. Score every seed on every set."
        )
    return BootstrapDraws(
        np.mean([draws.figures for draws in sets], axis=0), np.mean([draws.draws for draws in sets], axis=0)
    )


def figure_of(drawn: BootstrapDraws, *, seed: int = 0) -> Estimate:
    """Estimate a method's score.

    Raises:
        EvaluationError: All draws are NaN.
    """
    figures_S = drawn.figures
    low, high = percentile_interval(_finite(drawn.draws.mean(axis=1) + _seed_deviations(drawn, seed=seed)))
    sd = float(figures_S.std(ddof=1)) if len(figures_S) > 1 else None
    return Estimate(float(figures_S.mean()), sd, low, high, len(figures_S))


def difference_of(first: BootstrapDraws, second: BootstrapDraws, *, seed: int = 0) -> Difference:
    """Return the difference second − first of two methods on the same draws of pairs; their seeds are independent.

    Args:
        first: The reference method.
        second: The other method.
        seed: Seed of the order of the deviations over seeds.

    Raises:
        EvaluationError: As `figure_of`.
    """
    value = float(second.figures.mean() - first.figures.mean())
    on_pairs_R = second.draws.mean(axis=1) - first.draws.mean(axis=1)
    return drawn_difference(value, _finite(on_pairs_R + _seed_deviations(first, second, seed=seed)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values of several comparisons by Holm's method (1979), which bounds the family-wise error rate."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _seed_deviations(*methods: BootstrapDraws, seed: int) -> NDArray[np.float64]:
    """Return deviations (R,) of the mean over seeds, or of the difference of two; 0 if no method has several seeds.

    They are the quantiles of their distribution in random order, so that they add no sampling error.
    """
    from scipy.stats import t  # slow import, which the command does not need

    figures = [method.figures for method in methods if len(method.figures) > 1]
    variances = [float(figures_S.var(ddof=1)) / len(figures_S) for figures_S in figures]
    resamples = len(methods[0].draws)
    if not any(variances):
        return np.zeros(resamples)
    squares = [variance**2 / (len(figures_S) - 1) for variance, figures_S in zip(variances, figures, strict=True)]
    freedom = sum(variances) ** 2 / sum(squares)
    quantiles_R = t.ppf((np.arange(resamples) + 0.5) / resamples, freedom) * np.sqrt(sum(variances))
    return np.random.default_rng(seed).permutation(quantiles_R)


def _finite(values_R: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = values_R[np.isfinite(values_R)]
    if len(finite) == 0:
        raise EvaluationError(
            f"all {len(values_R)} bootstrap draws are constant, expected different values. Compare on more pairs, or "
            "check whether an encoder gives every pair the same cosine."
        )
    return finite
