"""Whether a run gives a published row's figures: pure arithmetic on figures × 100.

Design choices
- The verdict is a test of equivalence: two one-sided tests at `ALPHA` each (Schuirmann 1987), which is to ask whether
  the 90 % interval of the mean over seeds lies within a margin of the printed figure. The margin is named before the
  run. Few seeds widen the interval, so they make REPRODUCED rarer, where a printed figure inside a wide interval would
  make it more frequent.
- The interval is that of seeds alone. The printed figure was measured on the same pairs, so the chance of pairs moves
  both alike, and no number of seeds would make it smaller.
- The printed figure is taken as exact: papers rarely print its spread. The margin has to cover it.
- `Measured.interval` is another: of seeds and pairs, what the figure may be on other pairs. Their half-widths add as
  squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final, Literal

from models.errors import EvaluationError
from models.evaluation.significance.bootstrap import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict = Literal["REPRODUCED", "BELOW", "ABOVE", "INCONCLUSIVE", "NOT COMPARABLE"]
MARGIN: Final = 1.0  # points; seeds of one recipe differ by about as much, and a printed figure is mostly of one
ALPHA: Final = 0.05  # of either one-sided test: how often a figure that is `MARGIN` off is called REPRODUCED
MOST: Final = 1000  # seeds that are counted up to
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
        """95 %, over seeds and pairs; of pairs alone for one seed."""
        half = 0.0 if self.sd is None else half_width(self.sd, len(self.values), LEVEL)
        return self.mean - (half**2 + self.below**2) ** 0.5, self.mean + (half**2 + self.above**2) ** 0.5


@dataclass(frozen=True)
class Comparison:
    """A figure beside a published one.

    Attributes:
        verdict: REPRODUCED, BELOW, ABOVE or INCONCLUSIVE.
        interval: 90 %, over seeds; None where one run leaves their spread unknown.
        needed: seeds that would end an INCONCLUSIVE comparison, if mean and spread stay as they are; 2 where the spread
            is unknown, None where they would be more than `MOST` or the comparison is settled.
    """

    verdict: Verdict
    interval: tuple[float, float] | None
    needed: int | None = None


def half_width(sd: float, seeds: int, level: float) -> float:
    """Half the width of Student's interval of a mean over two or more seeds."""
    return _quantile((1 + level) / 2, seeds - 1) * sd / sqrt(seeds)


@cache
def _quantile(share: float, freedom: int) -> float:
    from scipy.stats import t  # takes a second, which readers of MARGIN alone spare

    return float(t.ppf(share, freedom))


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


def compare(figure: Measured, published: float, margin: float = MARGIN, *, draws: bool = True) -> Comparison:
    """Test whether a figure is equivalent to a published one.

    REPRODUCED: the whole interval lies within the margin of the published figure.
    BELOW, ABOVE: the whole interval lies further from it than the margin, on that side.
    INCONCLUSIVE: the interval crosses an end of the margin, or there is no interval.

    Args:
        figure: over seeds.
        published: what is printed, × 100.
        margin: points by which equivalent figures may differ.
        draws: whether seeds make a difference; if not, one run has the exact figure.
    """
    if figure.sd is None and draws:
        return Comparison("INCONCLUSIVE", None, needed=2)
    sd = figure.sd or 0.0
    half = half_width(sd, len(figure.values), 1 - 2 * ALPHA) if sd else 0.0
    interval = figure.mean - half, figure.mean + half
    gap = figure.mean - published
    if abs(gap) + half <= margin + _ROUNDING:
        return Comparison("REPRODUCED", interval)
    if abs(gap) - half > margin:
        return Comparison("BELOW" if gap < 0 else "ABOVE", interval)
    return Comparison("INCONCLUSIVE", interval, seeds_for(sd, abs(abs(gap) - margin)))


def seeds_for(sd: float, room: float) -> int | None:
    """Fewest seeds of a spread whose 90 % interval reaches less than `room` to either side; None above `MOST`."""
    enough = (seeds for seeds in range(2, MOST + 1) if half_width(sd, seeds, 1 - 2 * ALPHA) < room)
    return next(enough, None)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict of several: comparable only if all are; reproduced only if all are; else the worse side."""
    there = set(verdicts)
    order: tuple[Verdict, ...] = ("NOT COMPARABLE", "BELOW", "ABOVE", "INCONCLUSIVE", "REPRODUCED")
    return next((name for name in order if name in there), "NOT COMPARABLE")
