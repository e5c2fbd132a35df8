"""Accuracy and F1 of probes, with bootstrap intervals.

Resampling test rows gives a binomial number of correct rows and a multinomial confusion table. These are drawn
directly, which gives the same distribution without resampling rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.evaluation.signature import WHOLE, ScoreRow
from models.evaluation.significance.bootstrap import percentile_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.evaluation.config import BootstrapConfig, ProbeProtocol
    from models.evaluation.probe.problem import Problem
    from models.evaluation.probe.search import Outcome


def probe_rows(
    problem: Problem, outcomes: list[Outcome], protocol: ProbeProtocol, config: BootstrapConfig, *, f1: bool
) -> list[ScoreRow]:
    """Return the scores of one task: accuracy, and F1 of class 1 if `f1` is set (MRPC).

    Accuracy as in SentEval: percent of each outer fold, rounded to two digits, then the mean, rounded again.
    """
    right = np.concatenate([outcome.right for outcome in outcomes])
    percents = [round(100 * float(outcome.right.mean()), 2) for outcome in outcomes]
    generator = np.random.Generator(np.random.PCG64(config.seed))
    draws = generator.binomial(len(right), right.mean(), config.resamples) / len(right)
    split = "all" if problem.layout == "nested" else "test"
    key = (problem.name, WHOLE, split)
    accuracy = round(round(float(np.mean(percents)), 2) / 100, 4)
    rows = [ScoreRow(*key, "accuracy", protocol, accuracy, len(right), *percentile_interval(draws))]
    if f1:
        gold = np.concatenate([problem.labels[outer.test] for outer in problem.folds])
        table = _confusion(gold, np.concatenate([outcome.predicted for outcome in outcomes]))
        resampled = generator.multinomial(len(gold), table / len(gold), config.resamples)
        value = round(float(_f1(table)), 4)
        rows.append(ScoreRow(*key, "f1", protocol, value, len(gold), *percentile_interval(_f1(resampled))))
    return rows


def _confusion(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the confusion table for class 1: true positives, false positives, false negatives, others: (4,)."""
    return np.bincount(2 * (gold != 1) + (predicted != 1), minlength=4)[[0, 2, 1, 3]]


def _f1(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return F1 of confusion tables (…, 4); 0 if class 1 is neither gold nor predicted."""
    both, errors = counts[..., 0], counts[..., 1] + counts[..., 2]
    return 2 * both / np.maximum(2 * both + errors, 1)
