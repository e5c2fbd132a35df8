"""Whether a run gives a published row's figures: pure arithmetic on figures × 100.

A figure has two sources of chance. Seeds move the encoder: Student's interval of the mean over seeds. Pairs move the
figure of any one encoder: the bootstrap's interval, which more seeds on the same pairs do not narrow. Both are taken as
independent, so their half-widths add as squares; with one seed the second stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final, Literal

from scipy.stats import t

from models.errors import EvaluationError
from models.evaluation.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict = Literal["REPRODUCED", "BELOW", "ABOVE", "NOT COMPARABLE"]
TOLERANCE: Final = 1.0  # points; seeds of one recipe differ by about as much
DECIMALS: Final = 2  # as the field prints
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Measured:
    """A figure over seeds.

    Attributes:
        values: figure of each seed, × 100.
        below: how far the bootstrap's interval reaches below the figure, mean over seeds, × 100.
        above: how far it reaches above.
    """

    values: tuple[float, ...]
    below: float
    above: float

    @property
    def mean(self) -> float:
        """Over seeds."""
        return fmean(self.values)

    @property
    def sd(self) -> float | None:
        """Over seeds; None for one."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, over seeds and pairs."""
        seeds = len(self.values)
        margin = float(t.ppf((1 + LEVEL) / 2, seeds - 1)) * self.sd / seeds**0.5 if self.sd is not None else 0.0
        return self.mean - (margin**2 + self.below**2) ** 0.5, self.mean + (margin**2 + self.above**2) ** 0.5


def measured(figures: Sequence[tuple[float, float, float]]) -> Measured:
    """A figure from those of its seeds.

    Args:
        figures: value, low and high end of the bootstrap's interval in [-1, 1], a seed each.

    Raises:
        EvaluationError: there is no seed.
    """
    if not figures:
        raise EvaluationError("a figure of 0 seeds, expected 1 or more; run the recipe with a seed at least")
    return Measured(
        values=tuple(100 * value for value, _, _ in figures),
        below=fmean(100 * (value - low) for value, low, _ in figures),
        above=fmean(100 * (high - value) for value, _, high in figures),
    )


def average(figures: Sequence[Measured]) -> Measured:
    """The plain mean of several sets' figures, whose pairs are drawn apart.

    Raises:
        EvaluationError: no figures, or sets of unequal numbers of seeds.
    """
    seeds = {len(figure.values) for figure in figures}
    if len(seeds) != 1:
        raise EvaluationError(f"an average of sets with {sorted(seeds)} seeds, expected one number; score all alike")
    return Measured(
        values=tuple(map(fmean, zip(*(figure.values for figure in figures), strict=True))),
        below=sum(figure.below**2 for figure in figures) ** 0.5 / len(figures),
        above=sum(figure.above**2 for figure in figures) ** 0.5 / len(figures),
    )


def verdict(figure: Measured, published: float) -> Verdict:
    """What a figure says of a published one, if they are comparable.

    REPRODUCED: the published figure lies in the interval, or the printed ones differ by `TOLERANCE` at most.
    """
    low, high = figure.interval
    gap = round(figure.mean, DECIMALS) - published
    if low <= published <= high or abs(gap) <= TOLERANCE + _ROUNDING:
        return "REPRODUCED"
    return "BELOW" if gap < 0 else "ABOVE"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict of several: comparable only if all are; reproduced only if all are; else the worse side."""
    there = set(verdicts)
    order: tuple[Verdict, ...] = ("NOT COMPARABLE", "BELOW", "ABOVE", "REPRODUCED")
    return next((name for name in order if name in there), "NOT COMPARABLE")
