"""Is one encoder better than another on the same pairs? The paired bootstrap of their difference.

Both encoders are resampled by the same draws of pairs, so what they have in common (easy and hard pairs) cancels: the
interval of the difference is far narrower than two single intervals suggest (Efron and Tibshirani, 1993, chapter 16).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.errors import EvaluationError
from models.evaluation.significance.bootstrap import FIGURE, RESAMPLES, percentile_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.evaluation.significance.bootstrap import Metric


@dataclass(frozen=True)
class Difference:
    """How much better the second encoder is than the first.

    Attributes:
        value: Correlation of the second less that of the first, in [-2, 2].
        ci_low: Lower end of the 95 % percentile interval.
        ci_high: Upper end.
        p_value: Two-sided: twice the share of draws on the far side of 0, at least 2 / (draws + 1).
    """

    value: float
    ci_low: float
    ci_high: float
    p_value: float


def paired_difference(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    gold: NDArray[np.float64],
    *,
    metric: Metric = "spearman",
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Compare two encoders' cosines against one gold standard, pair by pair.

    Args:
        first: (n,) cosines of the encoder that is compared with.
        second: (n,) cosines of the other, row by row of the same pairs.
        gold: (n,) gold scores.
        metric: `spearman` or `pearson`.
        resamples: Draws of n pairs with replacement.
        seed: Of the draws.

    Raises:
        EvaluationError: As `models.evaluation.correlation.spearman`; or all draws of one side are constant.
    """
    # Gold stands first: the draws follow the order of the first argument, so both encoders meet the same ones.
    draws = [RESAMPLES[metric](gold, cosines, resamples=resamples, seed=seed) for cosines in (first, second)]
    differences = draws[1] - draws[0]
    if not np.isfinite(differences).any():
        raise EvaluationError(
            f"none of {resamples} draws of {len(gold)} pairs varies, expected some that do; compare on more pairs"
        )
    return drawn_difference(FIGURE[metric](second, gold) - FIGURE[metric](first, gold), differences)


def forgets(difference: float, allowed: float) -> bool:
    """Whether an encoder lost more on a general set than it may.

    The figure itself decides, and not whether the loss is sure: an interval that holds 0 shows no loss, but does not
    show that there is none, and what is handed out must not have lost more than it may.

    Args:
        difference: Of the figures, after less before, in [-2, 2].
        allowed: What may be lost, ≥ 0.
    """
    return difference < -allowed


def drawn_difference(value: float, draws_R: NDArray[np.float64]) -> Difference:
    """A difference with the interval and the p that its draws give; draws that are not finite are left out."""
    kept = draws_R[np.isfinite(draws_R)]
    far = min(int((kept <= 0).sum()), int((kept >= 0).sum()))
    return Difference(value, *percentile_interval(kept), min(1.0, 2 * (far + 1) / (len(kept) + 1)))
