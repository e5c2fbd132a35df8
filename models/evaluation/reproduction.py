"""Test whether a run reproduces published scores (equivalence test over seeds; scores × 100).

Design choices
- The verdict is an equivalence test: two one-sided tests at `ALPHA` each (Schuirmann 1987). Equivalently, the 90 %
  interval of the mean over seeds must be within a margin of the published score. The margin is fixed before the run.
  Few seeds widen the interval and so make REPRODUCED rarer. The rule "the published score is inside the interval"
  would make it more frequent.
- The interval covers seeds only. The published score was measured on the same pairs, so the choice of pairs affects
  both scores. More seeds would not reduce its effect.
- The published score counts as exact, since papers rarely print its spread. The margin has to cover the spread.
- `estimate_over_seeds` has another interval: over seeds and pairs, for the score on other pairs. The squares of their
  half-widths are added. Scores of every metric and protocol have it; those of `hierarchical` need draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final, Literal

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import MARGIN
from bsl.models.evaluation.significance.bootstrap import LEVEL
from bsl.models.evaluation.significance.hierarchical import Estimate
from bsl.models.evaluation.significance.seeds import half_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict = Literal["REPRODUCED", "BELOW", "ABOVE", "INCONCLUSIVE", "NOT COMPARABLE"]
ALPHA: Final = 0.05  # of each one-sided test: probability that a score `MARGIN` off is called REPRODUCED
MOST: Final = 1000  # upper bound of `seeds_for`
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Comparison:
    """Comparison of a score with a published one.

    Attributes:
        verdict: REPRODUCED, BELOW, ABOVE or INCONCLUSIVE.
        interval: 90 % interval over seeds; None if there is one seed, so that their spread is unknown.
        needed: Number of seeds that would decide an INCONCLUSIVE comparison if mean and spread stay the same; 2 if the
            spread is unknown. None if the comparison is decided, or needs more than `MOST` seeds.
    """

    verdict: Verdict
    interval: tuple[float, float] | None
    needed: int | None = None


def estimate_over_seeds(sets: Sequence[Sequence[tuple[float, float, float]]]) -> Estimate:
    """Estimate a score over seeds from the interval of each seed, with Student's t; for scores without draws.

    Args:
        sets: For each of the sets that are averaged and each seed, the score and the low and high end of its bootstrap
            interval. Draws of different sets are independent.

    Raises:
        EvaluationError: There is no seed, or sets differ in their number of seeds.
    """
    counts = sorted({len(seeds) for seeds in sets})
    if len(counts) != 1 or counts == [0]:
        raise EvaluationError(
            f"mean over sets: sets with {counts} seeds, expected the same number for all, at least 1. Score all sets "
            "with the same seeds."
        )
    values = [fmean(value for value, _, _ in by_set) for by_set in zip(*sets, strict=True)]
    below = hypot(*(fmean(value - low for value, low, _ in seeds) for seeds in sets)) / len(sets)
    above = hypot(*(fmean(high - value for value, _, high in seeds) for seeds in sets)) / len(sets)
    mean, sd = fmean(values), stdev(values) if len(values) > 1 else None
    half = 0.0 if sd is None else half_width(sd, len(values), LEVEL)
    return Estimate(mean, sd, mean - hypot(half, below), mean + hypot(half, above), len(values))


def compare(figure: Estimate, published: float, margin: float = MARGIN, *, draws: bool = True) -> Comparison:
    """Test whether a score is equivalent to a published one.

    REPRODUCED: the whole interval is within the margin of the published score.
    BELOW, ABOVE: the whole interval is outside the margin, on that side.
    INCONCLUSIVE: the interval crosses an end of the margin, or there is no interval.

    Args:
        figure: The score over seeds, in [-1, 1].
        published: The published score, × 100.
        margin: Points by which equivalent scores may differ.
        draws: Whether the score depends on the seed; if not, one run has the exact score.
    """
    if figure.sd is None and draws:
        return Comparison("INCONCLUSIVE", None, needed=2)
    mean, sd = 100 * figure.mean, 100 * (figure.sd or 0.0)
    half = half_width(sd, figure.seeds, 1 - 2 * ALPHA) if sd else 0.0
    interval = mean - half, mean + half
    gap = mean - published
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
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("NOT COMPARABLE", "BELOW", "ABOVE", "INCONCLUSIVE", "REPRODUCED")
    return next((name for name in order if name in found), "NOT COMPARABLE")
