"""Paired bootstrap test of the difference between two encoders on the same pairs.

Both encoders get the same draws of pairs, so the effect of easy and hard pairs cancels. The interval of the difference
is far narrower than two separate intervals suggest (Efron and Tibshirani, 1993, chapter 16).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from bsl.models.evaluation.significance.bootstrap import percentile_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

Side = Literal["above", "below", "no"]

_SIGNIFICANT: Final = 0.05


@dataclass(frozen=True)
class Difference:
    """Difference between two encoders' scores, second − first.

    Attributes:
        value: The difference, for correlations in [-2, 2].
        ci_low: Lower end of the 95 % percentile interval.
        ci_high: Upper end.
        p_value: Two-sided: twice the share of draws on the other side of 0, at least 2 / (draws + 1).
    """

    value: float
    ci_low: float
    ci_high: float
    p_value: float

    @property
    def verdict(self) -> Side:
        """`above` or `below` if the interval excludes 0 and p, corrected by the caller, is below 0.05; else `no`."""
        return side_of(self.ci_low, self.ci_high, self.p_value)


def side_of(ci_low: float, ci_high: float, p_value: float) -> Side:
    """Return `above` or `below` if an interval of a difference excludes 0 and p is below 0.05; else `no`."""
    if p_value >= _SIGNIFICANT:
        return "no"
    return "above" if ci_low > 0 else "below" if ci_high < 0 else "no"


def forgets(difference: float, allowed: float) -> bool:
    """Return whether an encoder lost more than allowed on a general set.

    The difference itself decides, not its significance: an interval that contains 0 does not show that there is no
    loss.

    Args:
        difference: Score after − score before, in [-2, 2].
        allowed: Largest allowed loss, ≥ 0.
    """
    return difference < -allowed


def drawn_difference(value: float, draws_R: NDArray[np.float64]) -> Difference:
    """Return a difference with interval and p-value from its draws; draws that are not finite are ignored."""
    finite = draws_R[np.isfinite(draws_R)]
    far = min(int((finite <= 0).sum()), int((finite >= 0).sum()))
    return Difference(value, *percentile_interval(finite), min(1.0, 2 * (far + 1) / (len(finite) + 1)))
