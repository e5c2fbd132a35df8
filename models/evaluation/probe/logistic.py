"""Exact L2 logistic regression for many folds and penalties at once.

The objective is scikit-learn's: C · Σ loss + ½‖w‖², without penalty on the bias; softmax loss for more than two
classes. A fold is a column of row weights. All folds of one penalty are columns of one matrix, so an iteration is two
matrix products over the data, whatever the number of folds.

1. The folds are similar, so the problem with each row's mean weight over the folds is solved first.
2. Its curvature, factored once, preconditions L-BFGS on all folds. They start from its solution and need a few steps.

For several classes the preconditioner is the mean curvature of the classes, as if they were independent. If that is
inaccurate (classes of very unequal size, features of very unequal scale), convergence is slow. After some iterations
the joint curvature of all classes replaces it, which costs more and needs a few steps again. With many classes the
joint curvature would be too large. Then each class's own curvature replaces the mean, and soon, because the mean fits
none of them.

Features may be sparse, such as TF-IDF: then products and preconditioner are sparse, and the solution is the same. Both
are centred, which does not change the weights and decouples the bias from them. Subtracting the mean would make sparse
rows dense, so it is subtracted from the products: (x − m)·w = x·w − m·w.

The penalty makes the objective strongly convex with modulus 1 in the weights. So their distance to the optimum is at
most the norm of the gradient (with the bias at its optimum). This norm is the stopping criterion, so convergence is
proven.

Shapes: N rows, P = D + 1 parameters of a score (features, then the bias), F folds, K scores (1 for two classes), X any
number of columns, k directions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch
from torch.nn.functional import one_hot, softplus

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.probe.rows import LARGEST, DenseRows, SparseRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from bsl.models.evaluation.probe.rows import Inverse
    from bsl.models.runtime.progress import OnProgress


PATIENCE: Final = (100, 300, 700)  # iterations at which the classes' joint curvature at the current point takes over
SUFFICIENT: Final = 1e-4  # share of the predicted decrease that a step must reach (Armijo)
ROUGH: Final = 1e-2  # tolerance of the mean problem, whose solution is only a starting point
CURVATURE: Final = 0.25  # upper bound of p (1 − p)
SOFTPLUS_LINEAR: Final = 40.0  # above, log(1 + exp x) is x in float64; at 20, torch's default, it is 2e-9 more
BLOCK_CELLS: Final = 1 << 24  # rows × scores of one block of folds: limits memory to a few times 128 MiB


class NotConvergedError(EvaluationError):
    """A logistic regression did not reach its tolerance."""


class Arithmetic(NamedTuple):
    """Precision of dense features, and how the solver uses it.

    Attributes:
        dtype: Precision of features, scores and weights.
        rounding: Relative error of an objective, which the line search must not take for an increase.
        patience_of_many: With many classes, iterations at which each class's own curvature at the current point
            becomes the preconditioner.
        history: Pairs of steps and gradient changes that L-BFGS stores.
        most: Maximal number of iterations.
        carries: Start a fold under the next penalty with its own distance from the mean problem's solution.
    """

    dtype: torch.dtype
    rounding: float
    patience_of_many: tuple[int, ...]
    history: int
    most: int
    carries: bool


EXACT: Final = Arithmetic(torch.float64, 1e-13, (10, 60, 200, 500), history=10, most=1000, carries=False)
SINGLE: Final = Arithmetic(torch.float32, 1e-6, (40, 100), history=5, most=200, carries=True)
"""A fifth of the time of `EXACT`; reaches tolerances of about 1e-3."""


def fit_logistic(
    x_ND: torch.Tensor | csr_array,
    y_N: torch.Tensor,
    classes: int,
    fits: Sequence[NDArray[np.int64]],
    penalties: Sequence[Sequence[float]],
    *,
    tolerance: float = 1e-4,
    arithmetic: Arithmetic = EXACT,
    on_progress: OnProgress | None = None,
) -> torch.Tensor:
    """Solve every fold under each of its penalties; return the weights (F, R, P, C), C = `classes`.

    A class without a row in a fold has weights 0 and bias −∞ there, the limit that its bias would approach.

    Args:
        x_ND: Features on the device to compute on, the CPU if sparse.
        y_N: Class numbers.
        classes: Number of classes, two or more.
        fits: Rows of each fold.
        penalties: scikit-learn's `C` of each fold's R fits: larger is weaker regularisation.
        tolerance: Bound on ‖gradient‖ / max(1, ‖weights‖) of each fit.
        arithmetic: Precision of dense features; sparse ones are always solved in float64.
        on_progress: Called as (penalties done, penalties in total, detail), counted for each set of classes of folds.

    Raises:
        NotConvergedError: A fit does not converge in `arithmetic.most` iterations (features of extreme scale).
    """
    labels_N = y_N.numpy(force=True)
    known_FC = np.stack([np.bincount(labels_N[rows], minlength=classes) > 0 for rows in fits])
    if known_FC.all():
        return _fit_known(x_ND, y_N, classes, fits, penalties, tolerance, arithmetic, on_progress)
    dtype = arithmetic.dtype if isinstance(x_ND, torch.Tensor) else torch.float64
    shape = (len(fits), len(penalties[0]), x_ND.shape[1] + 1, classes)
    out = torch.zeros(shape, dtype=dtype, device=y_N.device)
    out[:, :, -1] = -torch.inf
    patterns = np.unique(known_FC, axis=0)
    for number, known_C in enumerate(patterns):
        known, folds = np.flatnonzero(known_C), np.flatnonzero((known_FC == known_C).all(axis=1)).tolist()
        if len(known) == 1:
            out[folds, :, -1, known[0]] = 0.0
            continue
        # Rows of other classes are in none of these folds, so any number will do for them.
        numbers_N = torch.from_numpy(np.searchsorted(known, labels_N).clip(max=len(known) - 1)).to(y_N)
        some = [fits[fold] for fold in folds], [penalties[fold] for fold in folds]
        progress = None if on_progress is None else partial(_within, on_progress, number, len(patterns))
        solved = _fit_known(x_ND, numbers_N, len(known), *some, tolerance, arithmetic, progress)
        for fold, weights_RPX in zip(folds, solved, strict=True):
            out[fold][:, :, torch.from_numpy(known)] = weights_RPX
    return out


def _within(on_progress: OnProgress, part: int, parts: int, done: int, total: int, detail: str) -> None:
    """Report the progress of one of several parts as that of all."""
    on_progress(part * total + done, parts * total, detail)


def _fit_known(
    x_ND: torch.Tensor | csr_array,
    y_N: torch.Tensor,
    classes: int,
    fits: Sequence[NDArray[np.int64]],
    penalties: Sequence[Sequence[float]],
    tolerance: float,
    arithmetic: Arithmetic,
    on_progress: OnProgress | None,
) -> torch.Tensor:
    """As `fit_logistic`, for folds with rows of every class."""
    rows: DenseRows | SparseRows
    if isinstance(x_ND, torch.Tensor):
        rows = DenseRows(x_ND, arithmetic.dtype)
    else:
        rows, arithmetic = SparseRows(x_ND), EXACT
    family = _Family(rows, y_N, classes, arithmetic)
    out = rows.centre.new_zeros((len(fits), len(penalties[0]), rows.parameters, family.scores))
    grid = sorted({c for row in penalties for c in row})
    size = max(1, BLOCK_CELLS // (max(rows.count, rows.parameters) * family.scores))
    row_weights_NF = _row_weights(rows.count, fits).to(rows.centre)
    mean_N = row_weights_NF.mean(dim=1, keepdim=True)
    start = rows.centre.new_zeros((rows.parameters, 1, family.scores))
    gram = family.gram(start, mean_N)
    earlier = start.new_zeros((rows.parameters, len(fits), family.scores))  # each fold's distance from `start`
    for number, c in enumerate(grid):
        start = family.solve(c, mean_N, start, rows.inverse(c, gram), max(tolerance, ROUGH))
        gram = family.gram(start, mean_N)
        solve = rows.inverse(c, gram)
        cells = [
            (fold, column) for fold, row in enumerate(penalties) for column, penalty in enumerate(row) if penalty == c
        ]
        for begin in range(0, len(cells), size):
            folds, columns = map(list, zip(*cells[begin : begin + size], strict=True))
            found = family.solve(c, row_weights_NF[:, folds], start + earlier[:, folds], solve, tolerance)
            if arithmetic.carries:
                earlier[:, folds] = found - start
            out[folds, columns] = found.transpose(0, 1)
        if on_progress is not None:
            on_progress(number + 1, len(grid), f"C = {c:g}, {len(cells)} fits")
    out[:, :, -1] -= torch.einsum("d,frdk->frk", rows.centre, out[:, :, :-1])  # weights of uncentred features
    return torch.cat([torch.zeros_like(out), out], dim=3) if classes == 2 else out  # the first of two scores is 0


def _row_weights(rows: int, fits: Sequence[NDArray[np.int64]]) -> torch.Tensor:
    weights = torch.zeros((rows, len(fits)), dtype=torch.float64)
    for fold, rows_of_fold in enumerate(fits):
        weights[torch.from_numpy(rows_of_fold), fold] = 1.0
    return weights


class _Family:
    """Data and loss of a task."""

    def __init__(self, rows: DenseRows | SparseRows, y_N: torch.Tensor, classes: int, arithmetic: Arithmetic) -> None:
        self.rows, self.arithmetic = rows, arithmetic
        self.scores = 1 if classes == 2 else classes
        target = y_N[:, None] if classes == 2 else one_hot(y_N, classes)
        self.target_N1K = target.to(rows.centre)[:, None]
        self.patience = PATIENCE if self.scores * rows.parameters <= LARGEST else arithmetic.patience_of_many

    def gram(self, at_P1K: torch.Tensor, weight_N1: torch.Tensor) -> Any:  # noqa: ANN401 - what `rows.inverse` takes
        """Return XᵀDX, D the loss's curvature at a solution (mean over the scores); at 0 its upper bound."""
        if at_P1K.any():
            chance_N1K = self.chance(self.score(at_P1K))
            curve_N1 = (chance_N1K * (1 - chance_N1K)).mean(dim=2)
        else:
            curve_N1 = torch.full_like(weight_N1, CURVATURE)
        return self.rows.curvature(weight_N1 * curve_N1)

    def joint(self, c: float, state: _State) -> Inverse | None:
        """Return the inverse of the joint curvature of all scores, at the mean of a state's columns, if it is known."""
        if isinstance(self.rows, SparseRows):
            return None
        chance_N1K = self.chance(self.score(state.at.mean(dim=1, keepdim=True)))
        return self.rows.joint_inverse(c, state.weight_NF.mean(dim=1), chance_N1K[:, 0])

    def solve(
        self,
        c: float,
        weight_NF: torch.Tensor,
        start_PFK: torch.Tensor,
        precondition: Inverse,
        tolerance: float,
    ) -> torch.Tensor:
        """Minimise every column's objective by preconditioned L-BFGS: (P, F, K); drops columns when solved."""
        out = start_PFK.clone()
        alive = torch.arange(out.shape[1], device=out.device)
        state = _State(self, c, weight_NF, start_PFK.clone(), precondition)
        for number in range(self.arithmetic.most):
            open_F = ~(state.gap <= tolerance)  # NaN is not solved
            if not open_F.all():
                out[:, alive] = state.at
                alive = alive[open_F]
                if not len(alive):
                    return out
                state.keep(open_F)
            if number in self.patience and self.scores > 1 and (joint := self.joint(c, state)) is not None:
                state.precondition, state.moves = joint, []
            state.step()
        raise NotConvergedError(
            f"logistic regression with C = {c:g}: not converged after {self.arithmetic.most} iterations (gradient "
            f"{float(state.gap.max()):.1e} relative to the weights, expected at most {tolerance:g}). Scale the "
            "features, or raise tolerance."
        )

    def score(self, at_PFK: torch.Tensor) -> torch.Tensor:
        return self.rows.times(at_PFK.flatten(1)).view(-1, *at_PFK.shape[1:])

    def chance(self, score_NFK: torch.Tensor) -> torch.Tensor:
        return score_NFK.sigmoid() if self.scores == 1 else score_NFK.softmax(dim=2)

    def losses(self, score_NFK: torch.Tensor, weight_NF: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum of the losses of each column's rows: (F,).

        Computed from margins, since log Σ exp(score) − score of the class cancels: near the optimum it loses the digits
        that the line search needs.
        """
        if self.scores == 1:
            margin_NFK = score_NFK * (1 - 2 * self.target_N1K)
            loss_NF = softplus(margin_NFK[:, :, 0], threshold=SOFTPLUS_LINEAR)
        else:
            own_NF1 = (score_NFK * self.target_N1K).sum(dim=2, keepdim=True)
            loss_NF = (score_NFK - own_NF1).logsumexp(dim=2)
        return torch.einsum("nf,nf->f", loss_NF, weight_NF)

    def slope(self, score_NFK: torch.Tensor, weight_NF: torch.Tensor) -> torch.Tensor:
        """Return the gradient of `losses`: (P, F, K)."""
        error_NFK = self.chance(score_NFK).sub_(self.target_N1K).mul_(weight_NF[:, :, None])
        return self.rows.back(error_NFK.flatten(1)).view(-1, *score_NFK.shape[1:])


class _State:
    """Preconditioned L-BFGS over all columns in lockstep; stores the scores X·w, so line search needs no product."""

    def __init__(
        self,
        family: _Family,
        c: float,
        weight_NF: torch.Tensor,
        at: torch.Tensor,
        precondition: Inverse,
    ) -> None:
        self.family, self.c, self.weight_NF, self.at, self.precondition = family, c, weight_NF, at, precondition
        self.score = family.score(at)
        self.slope = self._slope()
        self.value_F = self._value(self.score, at)
        self.moves: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    @property
    def gap(self) -> torch.Tensor:
        """Stopping criterion: ‖gradient‖ / max(1, ‖weights‖) of each column."""
        size = self.at[:-1].square().sum(dim=(0, 2)).sqrt().clamp_min(1.0)
        return self.slope.square().sum(dim=(0, 2)).sqrt() / size

    def keep(self, open_F: torch.Tensor) -> None:
        """Keep only the columns `open_F`."""
        self.weight_NF, self.value_F = self.weight_NF[:, open_F], self.value_F[open_F]
        self.at, self.score, self.slope = self.at[:, open_F], self.score[:, open_F], self.slope[:, open_F]
        self.moves = [(step[:, open_F], change[:, open_F], rho_F[open_F]) for step, change, rho_F in self.moves]

    def step(self) -> None:
        """Do one iteration."""
        direction = -self._newton(self.slope)
        ahead = self.family.score(direction)
        directional_derivative_F = _dot(direction, self.slope)
        length_F = torch.ones_like(directional_derivative_F)
        for _ in range(50):
            value_F = self._value(self.score + length_F[:, None] * ahead, self.at + length_F[:, None] * direction)
            insufficient_F = (
                value_F
                > self.value_F
                + SUFFICIENT * length_F * directional_derivative_F
                + self.family.arithmetic.rounding * self.value_F.abs()
            )
            if not insufficient_F.any():
                break
            length_F = torch.where(insufficient_F, length_F / 2, length_F)
        move, before = length_F[:, None] * direction, self.slope
        self.at, self.score, self.value_F = self.at + move, self.score + length_F[:, None] * ahead, value_F
        self.slope = self._slope()
        change = self.slope - before
        self.moves = [*self.moves[1 - self.family.arithmetic.history :], (move, change, _rho(move, change))]

    def _newton(self, slope: torch.Tensor) -> torch.Tensor:
        """Apply the L-BFGS two-loop recursion, with the preconditioner in the middle."""
        used = []
        for move, change, rho_F in reversed(self.moves):
            share_F = rho_F * _dot(move, slope)
            slope = slope - share_F[:, None] * change
            used.append(share_F)
        slope = self.precondition(slope)
        for (move, change, rho_F), share_F in zip(self.moves, reversed(used), strict=True):
            slope = slope + (share_F - rho_F * _dot(change, slope))[:, None] * move
        return slope

    def _value(self, score: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        penalty_F = 0.5 * at[:-1].square().sum(dim=(0, 2))
        return self.c * self.family.losses(score, self.weight_NF) + penalty_F

    def _slope(self) -> torch.Tensor:
        slope = self.c * self.family.slope(self.score, self.weight_NF)
        slope[:-1] += self.at[:-1]
        return slope


def _rho(move_PFK: torch.Tensor, change_PFK: torch.Tensor) -> torch.Tensor:
    """Return 1 / (step · gradient change) of each column; 0, so that L-BFGS ignores the pair, if that is rounding."""
    curved_F = _dot(move_PFK, change_PFK)
    squares_F = _dot(move_PFK, move_PFK).sqrt() * _dot(change_PFK, change_PFK).sqrt()
    return torch.where(curved_F > torch.finfo(curved_F.dtype).eps * squares_F, 1 / curved_F, 0.0)


def _dot(one_PFK: torch.Tensor, two_PFK: torch.Tensor) -> torch.Tensor:
    return torch.einsum("pfk,pfk->f", one_PFK, two_PFK)
