"""Hierarchical bootstrap: compare methods over training seeds and test pairs.

A score varies with the pairs of the test set and with the seed of training. A draw therefore resamples pairs and, for
each method, seeds, both with replacement. An interval over pairs only would mistake one lucky seed for a better method.

Resampling S seeds underestimates the variance of their mean by the factor (S − 1) / S, by a third with three seeds. So
a draw's deviation from the mean of all seeds is multiplied by √(S / (S − 1)) (Rao and Wu, 1988). With one seed the
interval covers the pairs only.

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
    low, high = percentile_interval(_finite(_distribution(drawn, seed)))
    sd = float(figures_S.std(ddof=1)) if len(figures_S) > 1 else None
    return Estimate(float(figures_S.mean()), sd, low, high, len(figures_S))


def difference_of(first: BootstrapDraws, second: BootstrapDraws, *, seed: int = 0) -> Difference:
    """Return the difference second − first of two methods on the same draws of pairs; seeds are drawn independently.

    Args:
        first: The reference method.
        second: The other method.
        seed: Seed for the resampling of seeds.

    Raises:
        EvaluationError: As `figure_of`.
    """
    value = float(second.figures.mean() - first.figures.mean())
    # Another random stream for the second, or methods with equal numbers of seeds would get the same draws of seeds.
    return drawn_difference(value, _finite(_distribution(second, seed + 1) - _distribution(first, seed)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values of several comparisons by Holm's method (1979), which bounds the family-wise error rate."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _distribution(drawn: BootstrapDraws, seed: int) -> NDArray[np.float64]:
    """Return the draws (R,) of the mean over seeds."""
    resamples, seeds = drawn.draws.shape
    centre_R: NDArray[np.float64] = drawn.draws.mean(axis=1)
    if seeds == 1:
        return centre_R
    picks_RS = np.random.default_rng(seed).integers(0, seeds, (resamples, seeds))
    drawn_R = np.take_along_axis(drawn.draws, picks_RS, axis=1).mean(axis=1)
    stretched: NDArray[np.float64] = centre_R + np.sqrt(seeds / (seeds - 1)) * (drawn_R - centre_R)
    return stretched


def _finite(values_R: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = values_R[np.isfinite(values_R)]
    if len(finite) == 0:
        raise EvaluationError(
            f"all {len(values_R)} bootstrap draws are constant, expected different values. Compare on more pairs, or "
            "check whether an encoder gives every pair the same cosine."
        )
    return finite
