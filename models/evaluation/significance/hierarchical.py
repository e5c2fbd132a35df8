"""Is a method better than another, over seeds and over test pairs?

A figure varies for two reasons: which pairs stand in the test set, and which seed trained the encoder. A draw therefore
takes pairs with replacement and, among the encoders of a method, seeds with replacement; an interval over pairs alone
calls one lucky seed a better method.

Drawing S seeds with replacement gives the variance of their mean times (S − 1) / S, too little by a third with three
seeds. The deviation of a draw from the mean of all seeds is therefore stretched by √(S / (S − 1)) (Rao and Wu, 1988).
With one seed nothing is known of seeds: the interval is of the pairs alone.

Shapes: R draws, S seeds, N pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.errors import EvaluationError
from models.evaluation.correlation import spearman
from models.evaluation.significance.bootstrap import percentile_interval, spearman_resamples
from models.evaluation.significance.paired import Difference, drawn_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class BootstrapDraws:
    """A method's figure on one set.

    Attributes:
        figures: (S,) of each seed on all pairs.
        draws: (R, S) of each seed on each draw of pairs, the same draws for all.
    """

    figures: NDArray[np.float64]
    draws: NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A method's figure over seeds, on one set or as the mean of several.

    Attributes:
        mean: over seeds.
        sd: over seeds, n − 1; NaN with one.
        ci_low: lower end of the 95 % percentile interval over seeds and pairs.
        ci_high: upper end.
        seeds: how many.
    """

    mean: float
    sd: float
    ci_low: float
    ci_high: float
    seeds: int


def draws_of(
    gold_N: NDArray[np.float64],
    cosines_SN: NDArray[np.float64],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> BootstrapDraws:
    """Spearman's ρ of a method's encoders on draws of one set's pairs.

    Args:
        gold_N: gold scores.
        cosines_SN: a row a seed.
        resamples: R.
        seed: of the draws; methods that are compared need the same.

    Raises:
        EvaluationError: as `models.evaluation.correlation.spearman`.
    """
    # Gold stands first: the draws follow the order of the first argument, so every encoder meets the same ones.
    columns = [spearman_resamples(gold_N, cosines, resamples=resamples, seed=seed) for cosines in cosines_SN]
    figures = [spearman(cosines, gold_N) for cosines in cosines_SN]
    return BootstrapDraws(np.array(figures), np.stack(columns, axis=1))


def figure_of(sets: Sequence[BootstrapDraws], *, seed: int = 0) -> Estimate:
    """A method's figure as the mean of some sets, all with the same seeds in the same order.

    Raises:
        EvaluationError: sets differ in their seeds, or no draw varies.
    """
    figures_S = _mean_figures(sets)
    low, high = percentile_interval(_finite(_distribution(sets, seed)))
    sd = float(figures_S.std(ddof=1)) if len(figures_S) > 1 else float("nan")
    return Estimate(float(figures_S.mean()), sd, low, high, len(figures_S))


def difference_of(first: Sequence[BootstrapDraws], second: Sequence[BootstrapDraws], *, seed: int = 0) -> Difference:
    """The second method less the first, on the same draws of pairs; seeds are drawn for each on its own.

    Args:
        first: the method that is compared with, set by set.
        second: the other, on the same sets in the same order and with the same draws of pairs.
        seed: of the draws of seeds.

    Raises:
        EvaluationError: as `figure_of`; or the two were drawn on different numbers of sets.
    """
    if len(first) != len(second):
        raise EvaluationError(f"{len(first)} sets beside {len(second)}, expected the same; compare on the same sets")
    value = float(_mean_figures(second).mean() - _mean_figures(first).mean())
    # Another stream for the second, or equal numbers of seeds would be drawn alike.
    return drawn_difference(value, _finite(_distribution(second, seed + 1) - _distribution(first, seed)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values of several comparisons, adjusted so that the chance of any false one is bounded (Holm, 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def _mean_figures(sets: Sequence[BootstrapDraws]) -> NDArray[np.float64]:
    counts = {len(draws.figures) for draws in sets}
    if len(counts) != 1:
        raise EvaluationError(f"sets with {sorted(counts)} seeds, expected one number; score every seed on every set")
    means: NDArray[np.float64] = np.mean([draws.figures for draws in sets], axis=0)
    return means


def _distribution(sets: Sequence[BootstrapDraws], seed: int) -> NDArray[np.float64]:
    """(R,) means over sets and drawn seeds."""
    by_seed_RS = np.mean([draws.draws for draws in sets], axis=0)
    resamples, seeds = by_seed_RS.shape
    centre_R: NDArray[np.float64] = by_seed_RS.mean(axis=1)
    if seeds == 1:
        return centre_R
    picks_RS = np.random.default_rng(seed).integers(0, seeds, (resamples, seeds))
    drawn_R = np.take_along_axis(by_seed_RS, picks_RS, axis=1).mean(axis=1)
    stretched: NDArray[np.float64] = centre_R + np.sqrt(seeds / (seeds - 1)) * (drawn_R - centre_R)
    return stretched


def _finite(values_R: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = values_R[np.isfinite(values_R)]
    if len(kept) == 0:
        raise EvaluationError(
            f"none of {len(values_R)} draws varies, expected some that do; compare on more pairs, or look at encoders "
            "that give every pair one cosine"
        )
    return kept
