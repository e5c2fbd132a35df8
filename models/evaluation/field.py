"""Which of several methods helps: each beside where it started, and the best beside all others.

Methods are held against each other on the same draws of what they are proved on. What a proof asks of one document, or
of one run of a long document, is drawn together. Two corrections for many comparisons, both Holm's: over all
methods where each is compared with the start, and over all pairs of methods where the best is compared with another,
for which one is best was not known before.

Shapes: M methods, S seeds, Q their encoders, N questions, R draws.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.evaluation.forgetting import forgets
from models.evaluation.hierarchical import Draws, difference_of, holm
from models.evaluation.study import LEVEL, study_rows, verdict
from models.evaluation.units import unit_means

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.paired import Difference
    from models.evaluation.retrieval import Retrieval

TEXT: Final = "your text"
"""The mean of what decides."""


@dataclass(frozen=True)
class Proof:
    """One thing that methods are held against each other by.

    Attributes:
        name: what tables call it.
        metric: what its figures are.
        group: proofs of one group count as one where it decides; empty if it does not.
        methods: figures and draws of each method, all on the same draws.
    """

    name: str
    metric: str
    group: str
    methods: tuple[Draws, ...]


@dataclass(frozen=True)
class Standing:
    """A method beside the best.

    Attributes:
        label: its name.
        behind: the best less it.
        p_value: Holm's, over all pairs of methods.
    """

    label: str
    behind: Difference
    p_value: float

    @property
    def beaten(self) -> bool:
        """Whether the best is better for sure."""
        return self.behind.ci_low > 0 and self.p_value < LEVEL


@dataclass(frozen=True)
class Ranking:
    """The best of those that may be chosen.

    Attributes:
        best: its label.
        others: how far each other method is behind the best, in the order of the methods.
    """

    best: str
    others: tuple[Standing, ...]


def outcome_draws(
    outcomes: Sequence[NDArray[np.float64]], unit_N: NDArray[np.int64], *, resamples: int = 1000, seed: int = 0
) -> tuple[Draws, ...]:
    """Means of answers over draws of units, for each method.

    Args:
        outcomes: of each method (S, N): how well each question was answered, such as 1 by the rank, or 0 and 1.
        unit_N: whose answers are drawn together: a document, or a run of one.
        resamples: R.
        seed: of the draws; questions about one text that are averaged need the same.
    """
    values_QN = np.concatenate([answers.astype(np.float64) for answers in outcomes])
    draws_RQ = unit_means(values_QN, unit_N, resamples=resamples, seed=seed)
    ends = np.cumsum([len(answers) for answers in outcomes])[:-1]
    parts = zip(np.split(values_QN.mean(axis=1), ends), np.split(draws_RQ, ends, axis=1), strict=True)
    return tuple(Draws(figures_S, draws_RS) for figures_S, draws_RS in parts)


def probe_proofs(
    ranks: Mapping[str, Sequence[NDArray[np.float64]]],
    probes: Mapping[str, Retrieval],
    learnt: Collection[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Iterator[Proof]:
    """How well methods find what belongs together in one held-out text, all probes on the same draws of its units.

    Args:
        ranks: by probe, of each method (S, N): reciprocal ranks.
        probes: by name.
        learnt: names of those that are made as some method's views are, so that they decide nothing.
        resamples: R.
        seed: of the draws.
    """
    for name, probe in probes.items():
        draws = outcome_draws(ranks[name], probe.unit, resamples=resamples, seed=seed)
        yield Proof(name, "mean reciprocal rank", "" if name in learnt else "text", draws)


def decisive(proofs: Sequence[Proof]) -> tuple[Draws, ...]:
    """What decides, of each method: the mean over groups of the mean over the proofs of a group.

    Args:
        proofs: at least one of which has a group.
    """
    groups = dict.fromkeys(proof.group for proof in proofs if proof.group)
    means = [_mean_of([proof.methods for proof in proofs if proof.group == group]) for group in groups]
    return _mean_of(means)


def field_rows(labels: Sequence[str], proofs: Sequence[Proof], *, seed: int = 0) -> Iterator[dict[str, object]]:
    """A row a method for what decides, then for each proof.

    Args:
        labels: the methods; the first is the start, which the others are compared with.
        proofs: on all methods.
        seed: of the draws of seeds.

    Yields:
        as `models.evaluation.study.study_rows`, and `metric`, `decides`, `verdict`.
    """
    kinds = {TEXT: ("mean", True)} | {proof.name: (proof.metric, bool(proof.group)) for proof in proofs}
    sets = {TEXT: decisive(proofs)} | {proof.name: proof.methods for proof in proofs}
    for name, methods in sets.items():
        metric, decides = kinds[name]
        for row in study_rows(labels, {name: methods}, seed=seed):
            yield row | {"metric": metric, "decides": decides, "verdict": verdict(row)}


def forgetful(rows: Iterable[Mapping[str, Any]], checks: Collection[str], allowed: float) -> dict[str, float]:
    """Label → the largest loss on a check, of methods that lost more there than they may.

    Args:
        rows: of the table.
        checks: names of the proofs that a method may not lose on.
        allowed: what may be lost.
    """
    lost: dict[str, float] = {}
    for row in rows:
        label, difference = row["label"], row["difference"]
        if row["dataset"] in checks and difference is not None and forgets(difference, allowed):
            lost[label] = min(difference, lost.get(label, difference))
    return lost


def not_chosen(rows: Iterable[Mapping[str, Any]], forgets: Collection[str]) -> set[str]:
    """Labels that are not to be chosen: what forgets, and where some are above the start for sure, all that are not.

    Args:
        rows: of the table.
        forgets: labels that lost too much on a check.
    """
    verdicts = {row["label"]: row["verdict"] for row in rows if row["dataset"] == TEXT}
    sure = {label for label, found in verdicts.items() if found == "above"} - set(forgets)
    return set(verdicts) - sure if sure else set(forgets)


def ranking(labels: Sequence[str], methods: Sequence[Draws], barred: Collection[str] = (), *, seed: int = 0) -> Ranking:
    """The best method, and which of the others it is better than for sure.

    Args:
        labels: the methods.
        methods: what decides, of each.
        barred: labels that are not to be chosen; not all of them.
        seed: of the draws of seeds.
    """
    figures = {label: float(draws.figures.mean()) for label, draws in zip(labels, methods, strict=True)}
    best = max((label for label in labels if label not in barred), key=figures.__getitem__)
    pairs = list(itertools.combinations(range(len(labels)), 2))
    differences = [difference_of([methods[one]], [methods[two]], seed=seed) for one, two in pairs]
    corrected = dict(zip(pairs, holm([found.p_value for found in differences]), strict=True))
    place = labels.index(best)
    others = [
        Standing(
            label,
            difference_of([methods[number]], [methods[place]], seed=seed),
            corrected[min(number, place), max(number, place)],
        )
        for number, label in enumerate(labels)
        if number != place
    ]
    return Ranking(best, tuple(others))


def _mean_of(sets: Sequence[Sequence[Draws]]) -> tuple[Draws, ...]:
    return tuple(
        Draws(
            np.mean([draws.figures for draws in method], axis=0),
            np.mean([draws.draws for draws in method], axis=0),
        )
        for method in zip(*sets, strict=True)
    )
