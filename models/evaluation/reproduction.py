"""Test whether a run reproduces published scores (equivalence test over seeds; scores × 100).

Design choices
- The verdict is an equivalence test: two one-sided tests at `ALPHA` each (Schuirmann 1987). Equivalently, the 90 %
  interval of the mean over seeds must be within a margin of the published score. The margin is fixed before the run.
  Few seeds widen the interval and so make REPRODUCED rarer. The rule "the published score is inside the interval"
  would make it more frequent.
- The interval covers seeds only. The published score was measured on the same pairs, so the choice of pairs affects
  both scores. More seeds would not reduce its effect.
- The published score counts as exact, since papers rarely print its spread. The margin has to cover the spread.
- `Measured.interval` is another interval: over seeds and pairs, for the score on other pairs. The squares of their
  half-widths are added.
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
MARGIN: Final = 1.0  # points; seeds of one recipe differ by about that, and most published scores are of one seed
ALPHA: Final = 0.05  # of each one-sided test: probability that a score `MARGIN` off is called REPRODUCED
MOST: Final = 1000  # upper bound of `seeds_for`
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Measured:
    """A score over seeds.

    Attributes:
        values: Score of each seed, × 100.
        below: Distance from the score down to the low end of its bootstrap interval, mean over seeds, × 100.
        above: Distance up to the high end.
    """

    values: tuple[float, ...]
    below: float
    above: float

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return fmean(self.values)

    @property
    def sd(self) -> float | None:
        """Standard deviation over seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval over seeds and pairs; with one seed, over pairs only."""
        half = 0.0 if self.sd is None else half_width(self.sd, len(self.values), LEVEL)
        return self.mean - (half**2 + self.below**2) ** 0.5, self.mean + (half**2 + self.above**2) ** 0.5


@dataclass(frozen=True)
class Comparison:
    """Comparison of a score with a published one.

    Attributes:
        verdict: REPRODUCED, BELOW, ABOVE or INCONCLUSIVE.
        interval: 90 % interval over seeds; None if there is one seed, so that their spread is unknown.
        needed: Number of seeds that would settle an INCONCLUSIVE comparison if mean and spread stay the same; 2 if the
            spread is unknown. None if more than `MOST` are needed or the comparison is settled.
    """

    verdict: Verdict
    interval: tuple[float, float] | None
    needed: int | None = None


def half_width(sd: float, seeds: int, level: float) -> float:
    """Return half the width of Student's t interval of a mean over two or more seeds."""
    return _quantile((1 + level) / 2, seeds - 1) * sd / sqrt(seeds)


@cache
def _quantile(share: float, freedom: int) -> float:
    from scipy.stats import t  # slow import, not needed for MARGIN alone

    return float(t.ppf(share, freedom))


def measured(figures: Sequence[tuple[float, float, float]]) -> Measured:
    """Collect the scores of several seeds.

    Args:
        figures: For each seed, the score and the low and high end of its bootstrap interval, in [-1, 1].

    Raises:
        EvaluationError: There is no seed.
    """
    if not figures:
        raise EvaluationError("a figure of 0 seeds, expected 1 or more; run the recipe with a seed at least")
    return Measured(
        values=tuple(100 * value for value, _, _ in figures),
        below=fmean(100 * (value - low) for value, low, _ in figures),
        above=fmean(100 * (high - value) for value, _, high in figures),
    )


def average(figures: Sequence[Measured]) -> Measured:
    """Return the mean score of several sets, whose bootstrap draws are independent.

    Raises:
        EvaluationError: There are no scores, or sets differ in their number of seeds.
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
    """Test whether a score is equivalent to a published one.

    REPRODUCED: the whole interval is within the margin of the published score.
    BELOW, ABOVE: the whole interval is outside the margin, on that side.
    INCONCLUSIVE: the interval crosses an end of the margin, or there is no interval.

    Args:
        figure: The score over seeds.
        published: The published score, × 100.
        margin: Points by which equivalent scores may differ.
        draws: Whether the score depends on the seed; if not, one run has the exact score.
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
    """Return the smallest number of seeds whose 90 % interval has a half-width below `room`; None above `MOST`."""
    enough = (seeds for seeds in range(2, MOST + 1) if half_width(sd, seeds, 1 - 2 * ALPHA) < room)
    return next(enough, None)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts: the first of NOT COMPARABLE, BELOW, ABOVE, INCONCLUSIVE, REPRODUCED that occurs."""
    there = set(verdicts)
    order: tuple[Verdict, ...] = ("NOT COMPARABLE", "BELOW", "ABOVE", "INCONCLUSIVE", "REPRODUCED")
    return next((name for name in order if name in there), "NOT COMPARABLE")
