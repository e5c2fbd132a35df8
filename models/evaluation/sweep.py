"""Several systems on the same sets: figures over seeds, differences with intervals, and the best.

All systems are compared on the same draws of each set. Two corrections for many comparisons, both Holm's: over all
systems that are compared with one reference on one set; and over all pairs of systems where the best is compared with
the others, because which one is best was not known before.

Shapes: M systems, S seeds, Q = M x S encoders, N questions, R draws.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.errors import EvaluationError
from models.evaluation.significance.hierarchical import BootstrapDraws, difference_of, figure_of, holm
from models.evaluation.significance.paired import forgets
from models.evaluation.significance.units import unit_means

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.significance.hierarchical import Estimate
    from models.evaluation.significance.paired import Difference

MEAN: Final = "mean of sets"
LEVEL: Final = 0.05
DRAWS: Final = 80  # a comparison: Holm's smallest p, 2 in the number of draws for each, is then half of 0.05
_ITSELF: Final = dict.fromkeys(("difference", "difference_low", "difference_high", "p_value"))


@dataclass(frozen=True)
class SetDraws:
    """One set and what every system scores on it.

    Attributes:
        name: name of the set in tables.
        metric: name of the figure.
        group: sets of one group count as one set in a mean of several; an empty group is left out of it.
        systems: figures and draws of each system, all on the same draws.
        protocol: how the figure was measured.
    """

    name: str
    metric: str
    group: str
    systems: tuple[BootstrapDraws, ...]
    protocol: str = "all"

    def named(self, name: str, group: str) -> SetDraws:
        """Return the same draws under another name and group."""
        return replace(self, name=name, group=group)


@dataclass(frozen=True)
class MethodResult:
    """A system compared with the best.

    Attributes:
        label: its name.
        behind: the best less this system.
        p_value: Holm's, over all pairs of systems.
    """

    label: str
    behind: Difference
    p_value: float

    @property
    def beaten(self) -> bool:
        """Whether the best is significantly better."""
        return self.behind.ci_low > 0 and self.p_value < LEVEL


@dataclass(frozen=True)
class Ranking:
    """The best of the systems that may be chosen.

    Attributes:
        best: its label.
        others: how far each other system is behind the best, in the order of the systems.
    """

    best: str
    others: tuple[MethodResult, ...]


@dataclass(frozen=True)
class SweepResult:
    """Systems on sets: the one result of every comparison of several systems.

    Attributes:
        labels: the systems.
        sets: the sets, each with the draws of all systems.
        seed: of the draws of seeds.
    """

    labels: tuple[str, ...]
    sets: tuple[SetDraws, ...]
    seed: int = 0

    def rows(self, references: Sequence[str] = ()) -> Iterator[dict[str, object]]:
        """Return a row per reference, set and system.

        Args:
            references: labels of the systems that all others are compared with; the first system if empty.

        Yields:
            label, dataset, metric, protocol, decides, mean, sd, ci_low, ci_high, seeds, reference, and, except for the
            reference itself, difference, difference_low, difference_high, p_value (Holm's) and verdict.

        Raises:
            EvaluationError: a reference is no system; or as `difference_of`.
        """
        if unknown := [label for label in references if label not in self.labels]:
            raise EvaluationError(
                f"to be compared with {', '.join(unknown)}, expected some of {', '.join(self.labels)}; name what is run"
            )
        for reference, own in itertools.product(references or self.labels[:1], self.sets):
            gains = self._gains(own, reference)
            for label, draws in zip(self.labels, own.systems, strict=True):
                row = _figure(figure_of([draws], seed=self.seed)) | gains.get(label, _ITSELF)
                place = {"label": label, "dataset": own.name, "metric": own.metric, "protocol": own.protocol}
                yield place | row | {"reference": reference, "decides": bool(own.group), "verdict": verdict(row)}

    def ranking(self, name: str, barred: Collection[str] = ()) -> Ranking:
        """Return the best system on one set, and how far the others are behind it.

        Args:
            name: of the set.
            barred: labels that must not be chosen; not all of them.
        """
        systems = next(own.systems for own in self.sets if own.name == name)
        figures = {label: float(draws.figures.mean()) for label, draws in zip(self.labels, systems, strict=True)}
        best = max((label for label in self.labels if label not in barred), key=figures.__getitem__)
        pairs = list(itertools.combinations(range(len(systems)), 2))
        found = [difference_of([systems[one]], [systems[two]], seed=self.seed) for one, two in pairs]
        corrected = dict(zip(pairs, holm([difference.p_value for difference in found]), strict=True))
        place = self.labels.index(best)
        others = [
            MethodResult(
                label,
                difference_of([systems[number]], [systems[place]], seed=self.seed),
                corrected[min(number, place), max(number, place)],
            )
            for number, label in enumerate(self.labels)
            if number != place
        ]
        return Ranking(best, tuple(others))

    def _gains(self, own: SetDraws, reference: str) -> dict[str, dict[str, object]]:
        """Return label → difference from the reference, of all systems but the reference."""
        systems = dict(zip(self.labels, own.systems, strict=True))
        gains = {
            label: difference_of([systems[reference]], [draws], seed=self.seed)
            for label, draws in systems.items()
            if label != reference
        }
        p_values = holm([gain.p_value for gain in gains.values()])
        return {
            label: {
                "difference": gain.value,
                "difference_low": gain.ci_low,
                "difference_high": gain.ci_high,
                "p_value": p_value,
            }
            for (label, gain), p_value in zip(gains.items(), p_values, strict=True)
        }


def mean_of(sets: Sequence[SetDraws], name: str = MEAN, metric: str = "mean") -> SetDraws:
    """Return the mean over groups of the mean over the sets of each group, as a set of its own.

    Args:
        sets: at least one of which has a group.
        name: of the mean.
        metric: of the mean.
    """
    groups = dict.fromkeys(own.group for own in sets if own.group)
    means = [_mean([own.systems for own in sets if own.group == group]) for group in groups]
    return SetDraws(name, metric, name, _mean(means))


def outcome_draws(
    outcomes: Sequence[NDArray[np.float64]], unit_N: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> tuple[BootstrapDraws, ...]:
    """Return means of answers over draws of units, for each system.

    Args:
        outcomes: of each system (S, N): how well each question was answered, such as 1 by the rank, or 0 and 1.
        unit_N: whose answers are drawn together: a document, or a run of one.
        resamples: R.
        seed: of the draws; questions about one text that are averaged need the same.
    """
    values_QN = np.concatenate([answers.astype(np.float64) for answers in outcomes])
    draws_RQ = unit_means(values_QN, unit_N, resamples=resamples, seed=seed)
    ends = np.cumsum([len(answers) for answers in outcomes])[:-1]
    parts = zip(np.split(values_QN.mean(axis=1), ends), np.split(draws_RQ, ends, axis=1), strict=True)
    return tuple(BootstrapDraws(figures_S, draws_RS) for figures_S, draws_RS in parts)


def verdict(row: Mapping[str, object]) -> str | None:
    """Return whether a row differs from its reference; None where there is no difference to judge.

    `above` or `below` only if the interval excludes 0 and the corrected p is below `LEVEL`; else `no`.
    """
    low, high, p_value = (row[name] for name in ("difference_low", "difference_high", "p_value"))
    if not (isinstance(low, float) and isinstance(high, float) and isinstance(p_value, float)):
        return None
    if p_value < LEVEL and low > 0:
        return "above"
    return "below" if p_value < LEVEL and high < 0 else "no"


def forgetful(rows: Iterable[Mapping[str, Any]], checks: Collection[str], allowed: float) -> dict[str, float]:
    """Return label → largest loss on a check, of systems that lost more than they may.

    Args:
        rows: of `SweepResult.rows`.
        checks: names of the sets that a system must not lose on.
        allowed: what may be lost.
    """
    lost: dict[str, float] = {}
    for row in rows:
        label, difference = row["label"], row["difference"]
        if row["dataset"] in checks and difference is not None and forgets(difference, allowed):
            lost[label] = min(difference, lost.get(label, difference))
    return lost


def not_chosen(rows: Iterable[Mapping[str, Any]], name: str, forgets: Collection[str]) -> set[str]:
    """Return the labels that must not be chosen: what forgets, and, if some are above the start, all that are not.

    Args:
        rows: of `SweepResult.rows`.
        name: the set that decides.
        forgets: labels that lost too much on a check.
    """
    verdicts = {row["label"]: row["verdict"] for row in rows if row["dataset"] == name}
    sure = {label for label, found in verdicts.items() if found == "above"} - set(forgets)
    return set(verdicts) - sure if sure else set(forgets)


def enough_draws(resamples: int, comparisons: int) -> int:
    """Return how many draws so many comparisons need: with fewer, no difference could pass Holm's correction.

    Args:
        resamples: as configured; never fewer.
        comparisons: of a table with one reference.
    """
    return max(resamples, DRAWS * comparisons)


def smallest_p(draws: int, comparisons: int) -> float:
    """Return the smallest p that draws can give one of several comparisons after Holm's correction, at most 1."""
    return min(1.0, 2 * max(comparisons, 1) / (draws + 1))


def _figure(figure: Estimate) -> dict[str, object]:
    return asdict(figure) | {"sd": figure.sd if figure.seeds > 1 else None}


def _mean(sets: Sequence[Sequence[BootstrapDraws]]) -> tuple[BootstrapDraws, ...]:
    return tuple(
        BootstrapDraws(
            np.mean([draws.figures for draws in system], axis=0),
            np.mean([draws.draws for draws in system], axis=0),
        )
        for system in zip(*sets, strict=True)
    )
