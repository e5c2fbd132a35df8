"""Compare several systems on the same sets: scores over seeds, differences with intervals, and the best system.

All systems are compared on the same bootstrap draws of each set. P-values are corrected by Holm's method over all
systems compared with one reference on one set.

Shapes: M systems, S seeds, Q = M x S encoders, N questions, R draws.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.signature import WHOLE
from bsl.models.evaluation.significance.bootstrap import unit_means
from bsl.models.evaluation.significance.hierarchical import BootstrapDraws, difference_of, figure_of, holm, mean_draws
from bsl.models.evaluation.significance.paired import forgets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from bsl.models.evaluation.significance.paired import Difference

MEAN: Final = "mean of sets"
DRAWS: Final = 80  # per comparison: Holm's smallest p is then 2 / 80 = 0.025, half of 0.05
_GAIN: Final = {
    "difference": "value", "difference_low": "ci_low", "difference_high": "ci_high", "p_value": "p_value",
    "verdict": "verdict",
}  # fmt: skip
"""Column of a row → field of a `Difference`."""
_FAMILY: Final = ("reference", "dataset", "split", "metric", "protocol", "subset")
"""Columns that the differences corrected together have in common."""


@dataclass(frozen=True)
class SetDraws:
    """Scores and bootstrap draws of all systems on one set.

    Attributes:
        dataset: Name of the dataset, or of the question about a text.
        metric: Name of the metric.
        group: Sets of one group count as one set in a mean; sets with an empty group are excluded from it.
        systems: Scores and draws of each system, with the same draws for all.
        split: Its split; empty without one.
        protocol: As in the table `scores`.
        n: Number of pairs, or questions.
    """

    dataset: str
    metric: str
    group: str
    systems: tuple[BootstrapDraws, ...]
    split: str = ""
    protocol: str = "all"
    n: int = 0

    @property
    def name(self) -> str:
        """Name of the set in tables."""
        return self.dataset if self.split in ("", WHOLE) else f"{self.dataset} {self.split}"


@dataclass(frozen=True)
class Choice:
    """The best of the systems that may be chosen.

    Attributes:
        best: Label of the best system.
        forgets: Label → largest loss on a check set (negative), for systems that lost too much to be chosen.
    """

    best: str
    forgets: Mapping[str, float]


@dataclass(frozen=True)
class SweepResult:
    """Result of a comparison of several systems on several sets.

    Attributes:
        labels: Names of the systems.
        sets: The sets, each with the draws of all systems.
        seed: Seed of the deviations over seeds.
    """

    labels: tuple[str, ...]
    sets: tuple[SetDraws, ...]
    seed: int = 0

    def rows(self, references: Sequence[str] = ()) -> Iterator[dict[str, object]]:
        """Yield a row for each reference, set and system.

        Args:
            references: Labels of the systems that all others are compared with; the first system if empty.

        Yields:
            label, dataset, metric, protocol, decides, mean, sd, ci_low, ci_high, seeds, reference, and, except for the
            reference itself, difference, difference_low, difference_high, p_value (Holm's) and verdict.

        Raises:
            EvaluationError: A reference is not a system; or as `difference_of`.
        """
        if unknown := [label for label in references if label not in self.labels]:
            raise EvaluationError(f"unknown reference {', '.join(unknown)}. Choose from {', '.join(self.labels)}.")
        for reference, one_set in itertools.product(references or self.labels[:1], self.sets):
            gains = self._gains(one_set, reference)
            for label, draws in zip(self.labels, one_set.systems, strict=True):
                gain = gains.get(label)
                yield {
                    "label": label,
                    "dataset": one_set.name,
                    "metric": one_set.metric,
                    "protocol": one_set.protocol,
                    **asdict(figure_of(draws, seed=self.seed)),
                    "reference": reference,
                    **{column: gain and getattr(gain, name) for column, name in _GAIN.items()},
                    "decides": bool(one_set.group),
                }

    def choice(self, name: str, checks: Collection[str] = (), allowed: float = 0.0) -> Choice:
        """Return the best system on one set.

        Systems that lost too much on a check set are excluded. If some of the others are significantly better than the
        first system, one of these is chosen; otherwise any of the others may be.

        Args:
            name: Name of the set that decides.
            checks: Names of the sets on which a system must not lose more than allowed, compared with the first.
            allowed: Largest allowed loss.
        """
        by_name, first = {one_set.name: one_set for one_set in self.sets}, self.labels[0]
        systems = dict(zip(self.labels, by_name[name].systems, strict=True))
        lost: dict[str, float] = {}
        for check in checks:
            for label, gain in self._gains(by_name[check], first).items():
                if forgets(gain.value, allowed):
                    lost[label] = min(gain.value, lost.get(label, gain.value))
        gains = self._gains(by_name[name], first)
        better = [label for label, gain in gains.items() if gain.verdict == "above" and label not in lost]
        candidates = better or [label for label in self.labels if label not in lost]
        return Choice(max(candidates, key=lambda label: systems[label].figures.mean()), lost)

    def _gains(self, one_set: SetDraws, reference: str) -> dict[str, Difference]:
        """Return label → difference from the reference, with corrected p, for all other systems."""
        systems = dict(zip(self.labels, one_set.systems, strict=True))
        gains = {
            label: difference_of(systems[reference], draws, seed=self.seed)
            for label, draws in systems.items()
            if label != reference
        }
        corrected = holm([gain.p_value for gain in gains.values()])
        return {
            label: replace(gain, p_value=p_value)
            for (label, gain), p_value in zip(gains.items(), corrected, strict=True)
        }


def mean_of(sets: Sequence[SetDraws], name: str = MEAN, metric: str = "mean") -> SetDraws:
    """Return the mean over groups as another set; a group's value is the mean over its sets.

    Args:
        sets: The sets; at least one has a group.
        name: Name of the mean.
        metric: Metric of the mean.
    """
    groups = dict.fromkeys(one_set.group for one_set in sets if one_set.group)
    means = [_mean([one_set.systems for one_set in sets if one_set.group == group]) for group in groups]
    return SetDraws(name, metric, name, _mean(means), n=sum(one_set.n for one_set in sets if one_set.group))


def outcome_draws(
    outcomes: Sequence[NDArray[np.float64]], unit_N: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> tuple[BootstrapDraws, ...]:
    """Return the bootstrap draws of each system's mean over questions, drawn by units.

    Equal seeds, units and numbers of draws draw the same units, so results of two calls may be subtracted or divided.

    Args:
        outcomes: For each system (S, N), the score of each question, such as a reciprocal rank, or 0 or 1.
        unit_N: Unit of each question, drawn as a whole: a document, or a run of one.
        resamples: R.
        seed: Seed of the draws; use the same seed for kinds of questions about one text that are averaged.
    """
    values_QN = np.concatenate([answers.astype(np.float64) for answers in outcomes])
    draws_RQ = unit_means(values_QN, unit_N, resamples=resamples, seed=seed)
    ends = np.cumsum([len(answers) for answers in outcomes])[:-1]
    parts = zip(np.split(values_QN.mean(axis=1), ends), np.split(draws_RQ, ends, axis=1), strict=True)
    return tuple(BootstrapDraws(figures_S, draws_RS) for figures_S, draws_RS in parts)


def enough_draws(resamples: int, comparisons: int) -> int:
    """Return the number of draws for a number of comparisons; with too few, no difference passes Holm's correction.

    Args:
        resamples: Configured number, the minimum.
        comparisons: Number of comparisons in a table with one reference.
    """
    return max(resamples, DRAWS * comparisons)


def smallest_p(draws: int, comparisons: int) -> float:
    """Return the smallest possible p after Holm's correction for a number of draws and comparisons, at most 1."""
    return min(1.0, 2 * max(comparisons, 1) / (draws + 1))


def with_holm(comparison: pl.DataFrame) -> pl.DataFrame:
    """Return differences with p corrected for the number of systems that are compared with a reference on a set."""
    family = [name for name in _FAMILY if name in comparison.columns]
    corrected = pl.col("p_value").map_batches(lambda found: pl.Series(holm(found.to_list())), return_dtype=pl.Float64)
    return comparison.with_columns(corrected.over(family))


def _mean(sets: Sequence[Sequence[BootstrapDraws]]) -> tuple[BootstrapDraws, ...]:
    return tuple(mean_draws(system) for system in zip(*sets, strict=True))
