"""Search over regularisations, the last fit and the scores of probes, for both protocols and all three layouts.

As in SentEval, a regularisation's score is the mean dev accuracy in percent, rounded to two digits, and the first of
equal scores wins. Resampling test rows gives a binomial number of correct rows and a multinomial confusion table. These
are drawn directly, which gives the same distribution without resampling rows.

Shapes: N rows, D features, F fits, R regularisations, P = D + 1 parameters of a class, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from scipy.sparse import csr_array

from bsl.models.evaluation.probe.adam import fit_adam, hold_out
from bsl.models.evaluation.probe.logistic import EXACT, NotConvergedError, fit_logistic
from bsl.models.evaluation.probe.problem import Fit, Inner
from bsl.models.evaluation.signature import WHOLE, ScoreRow
from bsl.models.evaluation.significance.bootstrap import percentile_interval

MOST_COLUMNS: Final = 4096  # of sparse features after conversion to dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig, ProbeProtocol
    from bsl.models.evaluation.probe.logistic import Arithmetic
    from bsl.models.evaluation.probe.problem import Layout, Problem
    from bsl.models.runtime.progress import OnProgress

    _Solver = Callable[["list[_Table]", list[list[Fit]], ProbeConfig, OnProgress | None], list[torch.Tensor]]


# Weight decays of the torch classifier, and C of the scikit-learn one (senteval/tools/validation.py).
DECAYS: Final = (1e-5, 1e-4, 1e-3, 1e-2)
STRENGTHS: Final[dict[Layout, tuple[float, ...]]] = {
    "nested": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "kfold": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    "split": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
}


@dataclass(frozen=True)
class Outcome:
    """Result of one outer fold.

    Attributes:
        dev: Dev score of each regularisation in percent, rounded as in SentEval.
        penalty: The chosen regularisation.
        predicted: Predicted class of each test row.
        right: Whether each prediction is correct.
    """

    dev: tuple[float, ...]
    penalty: float
    predicted: NDArray[np.int64]
    right: NDArray[np.bool_]


class _Table:
    """A task on the device that its protocol computes on.

    Attributes:
        problem: The task.
        labels: Class numbers.
        features: Dense with a last column of ones; sparse without it, on the CPU.
    """

    def __init__(
        self, problem: Problem, protocol: ProbeProtocol, device: str | torch.device, dtype: torch.dtype
    ) -> None:
        features = problem.features
        if isinstance(features, csr_array) and protocol == "senteval":
            features = heaviest_columns(features)  # dense: an Adam step changes every weight
        self.problem = problem
        self.features: torch.Tensor | csr_array
        if isinstance(features, csr_array):
            self.features, self.labels = features, torch.from_numpy(problem.labels)
            return
        x_ND = torch.from_numpy(features).to(device, dtype)
        self.features = torch.nn.functional.pad(x_ND, (0, 1), value=1.0)
        self.labels = torch.from_numpy(problem.labels).to(device)

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    def scores(self, rows: NDArray[np.int64], weights_RPC: torch.Tensor) -> torch.Tensor:
        """Return the scores of some rows, (R, rows, C)."""
        if not isinstance(self.features, csr_array):
            return self.features[torch.from_numpy(rows).to(self.labels.device)].to(weights_RPC.dtype) @ weights_RPC
        some = self.features[rows]
        return torch.stack(
            [torch.from_numpy(some @ weights_PC[:-1].numpy()) + weights_PC[-1] for weights_PC in weights_RPC]
        )


def probe(
    problems: Sequence[Problem],
    protocol: ProbeProtocol,
    config: ProbeConfig,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    arithmetic: Arithmetic = EXACT,
    on_progress: OnProgress | None = None,
) -> list[list[Outcome]]:
    """Run tasks under one protocol; return each task's outcomes of its outer folds, in order.

    Args:
        problems: Tasks of `make_problem`; tasks with equal width and number of classes are trained as one batch.
        protocol: `senteval` or `fast`.
        config: Settings of the protocol.
        device: Device to compute on.
        dtype: Precision of `senteval`; float32 in the original.
        arithmetic: Precision of `fast`; what does not converge in `SINGLE` is solved in `EXACT`.
        on_progress: Called as (fits done, fits in total, detail) for each batch of fits.

    Raises:
        EvaluationError: A logistic regression does not converge, or a last fit has too few rows.
    """
    tables = [_Table(problem, protocol, device, dtype) for problem in problems]
    groups: dict[tuple[int, int], list[int]] = {}
    for number, table in enumerate(tables):
        groups.setdefault((table.width, table.problem.classes), []).append(number)
    out: dict[int, list[Outcome]] = {}
    for members in groups.values():
        group = [tables[number] for number in members]
        out.update(zip(members, _run(group, protocol, config, arithmetic, on_progress), strict=True))
    return [out[number] for number in range(len(problems))]


def _run(
    tables: list[_Table],
    protocol: ProbeProtocol,
    config: ProbeConfig,
    arithmetic: Arithmetic,
    on_progress: OnProgress | None,
) -> list[list[Outcome]]:
    solve: _Solver = partial(_logistic, arithmetic) if protocol == "fast" else _adam
    fits = [
        [Fit(inner, _grid(table.problem.layout, protocol)) for outer in table.problem.folds for inner in outer.inner]
        for table in tables
    ]
    searched = solve(tables, fits, config, on_progress)
    scores = [_scores(*one) for one in zip(tables, fits, searched, strict=True)]
    final = [weights_FRPC[:, int(np.argmax(score[0]))] for weights_FRPC, score in zip(searched, scores, strict=True)]
    again = [number for number, table in enumerate(tables) if table.problem.layout != "split"]
    last = [_last_fits(tables[number].problem, scores[number], protocol, config) for number in again]
    # Layout `split` has no last fit: it would repeat the chosen fit of the search.
    for number, weights in zip(again, solve([tables[n] for n in again], last, config, None), strict=True):
        final[number] = weights[:, 0]
    return [_outcomes(*one, protocol) for one in zip(tables, scores, final, strict=True)]


def _grid(layout: Layout, protocol: ProbeProtocol) -> tuple[float, ...]:
    return DECAYS if protocol == "senteval" else STRENGTHS[layout]


def _scores(table: _Table, fits: list[Fit], weights_FRPC: torch.Tensor) -> list[tuple[float, ...]]:
    """Return the dev score of each regularisation, for each outer fold."""
    accuracy_FR = np.stack(
        [_right(table, fit.rows.dev, one)[1].mean(axis=1) for fit, one in zip(fits, weights_FRPC, strict=True)]
    )
    # With few units, outer folds differ in their number of inner ones.
    ends = np.cumsum([len(outer.inner) for outer in table.problem.folds])
    parts = np.split(accuracy_FR, ends[:-1])
    return [tuple(round(100 * float(np.mean(part[:, r])), 2) for r in range(part.shape[1])) for part in parts]


def _last_fits(
    problem: Problem, scores: list[tuple[float, ...]], protocol: ProbeProtocol, config: ProbeConfig
) -> list[Fit]:
    out = []
    for outer, score in zip(problem.folds, scores, strict=True):
        penalty = (_grid(problem.layout, protocol)[int(np.argmax(score))],)
        if protocol == "fast":
            out.append(Fit(Inner(outer.train, outer.train[:0]), penalty))
        else:
            train, dev = hold_out(outer.train, config.seed)
            out.append(Fit(Inner(train, dev), penalty, held_out_of=len(outer.train)))
    return out


def _outcomes(
    table: _Table, scores: list[tuple[float, ...]], weights_FPC: torch.Tensor, protocol: ProbeProtocol
) -> list[Outcome]:
    out = []
    for outer, score, weights_PC in zip(table.problem.folds, scores, weights_FPC, strict=True):
        predicted, right = _right(table, outer.test, weights_PC[None])
        penalty = _grid(table.problem.layout, protocol)[int(np.argmax(score))]
        out.append(Outcome(score, penalty, predicted[0], right[0]))
    return out


def _right(
    table: _Table, rows: NDArray[np.int64], weights_RPC: torch.Tensor
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the predicted classes of some rows and whether they are correct, each (R, rows)."""
    at = torch.from_numpy(rows).to(table.labels.device)
    predicted = table.scores(rows, weights_RPC).argmax(dim=2)
    return predicted.cpu().numpy(), (predicted == table.labels[at]).cpu().numpy()


def _adam(
    tables: list[_Table], fits: list[list[Fit]], config: ProbeConfig, on_progress: OnProgress | None
) -> list[torch.Tensor]:
    """Train all tasks as one batch, with their rows concatenated."""
    if not tables:
        return []
    starts = np.cumsum([0] + [len(table.labels) for table in tables[:-1]])
    moved = [fit.moved(int(start)) for start, part in zip(starts, fits, strict=True) for fit in part]
    x_NP = torch.cat([table.features for table in tables if isinstance(table.features, torch.Tensor)])
    y_N = torch.cat([table.labels for table in tables])
    weights = fit_adam(x_NP, y_N, tables[0].problem.classes, moved, config, on_progress)
    return list(torch.split(weights, [len(part) for part in fits]))


def _logistic(
    arithmetic: Arithmetic,
    tables: list[_Table],
    fits: list[list[Fit]],
    config: ProbeConfig,
    on_progress: OnProgress | None,
) -> list[torch.Tensor]:
    """Solve task by task: in one batch, products would run over rows of other tasks too."""
    return [
        _solved(table, part, config.tolerance, arithmetic, on_progress)
        for table, part in zip(tables, fits, strict=True)
    ]


def _solved(
    table: _Table, fits: list[Fit], tolerance: float, arithmetic: Arithmetic, on_progress: OnProgress | None
) -> torch.Tensor:
    try:
        return fit_logistic(
            table.features if isinstance(table.features, csr_array) else table.features[:, :-1],
            table.labels,
            table.problem.classes,
            [fit.rows.fit for fit in fits],
            [fit.penalties for fit in fits],
            tolerance=tolerance,
            arithmetic=arithmetic,
            on_progress=on_progress,
        )
    except NotConvergedError:
        if arithmetic is EXACT:
            raise
        return _solved(table, fits, tolerance, EXACT, on_progress)


def heaviest_columns(table_NV: csr_array) -> NDArray[np.float32]:
    """Return the columns with the largest sum as dense features, (N, D); 4,096 of 10,000 texts take 160 MB."""
    weights_V = np.abs(table_NV).sum(axis=0)
    heaviest = np.sort(np.argsort(-weights_V, kind="stable")[:MOST_COLUMNS])
    return np.asarray(table_NV[:, heaviest].toarray(), dtype=np.float32)


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
