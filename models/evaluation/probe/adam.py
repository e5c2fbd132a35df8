"""Train hundreds of SentEval's classifiers at once: a softmax layer, Adam, early stopping on dev accuracy.

Behaviour of the original that is reproduced (senteval/tools/classifier.py)
- Every fit starts from the same seed: the same initial weights, and the same row orders for fits of equal length.
- The loss is the batch mean. The original also sets `size_average = False`, without effect on torch ≥ 0.4.1.
- L2 is coupled: `weight_decay` of plain Adam, also on the bias; lr 1e-3, betas 0.9 and 0.999, ε 1e-8.
- Dev accuracy is measured every `epoch_size` epochs. The count of measurements without improvement is never reset, and
  a fit stops when it exceeds `tenacity`. The best weights are used, the first of equals.
- A round starts if at most `max_epoch` epochs are done, so the last may end `epoch_size` epochs beyond it.

A fold's fits under all regularisations share batches (rows of one matrix); folds are the batch dimension of a `bmm`.
Folds are sorted by steps per epoch, so that the folds with steps left are a prefix. Weights are laid out (C, P), not
(P, C): for few classes the product is four times as fast.

Shapes: F fits, R regularisations of each, C classes, P = D + 1 parameters of a class (features and a bias), B batch.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from bsl.models.errors import EvaluationError
from bsl.models.runtime.random_state import seeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.models.evaluation.config import ProbeConfig
    from bsl.models.evaluation.probe.problem import Fit
    from bsl.models.runtime.progress import OnProgress

LR, BETA_1, BETA_2, EPS = 1e-3, 0.9, 0.999, 1e-8  # defaults of torch.optim.Adam, as in SentEval
HELD_OUT: Final = 0.05  # share of the last fit's rows
CPU_BATCH_BYTES: Final = 2 << 20  # rows of one step fit the cache; fastest of 0.5, 1, 2 and 4 MiB
GPU_BATCH_BYTES: Final = 1 << 30


def fit_adam(
    x_NP: torch.Tensor,
    y_N: torch.Tensor,
    classes: int,
    fits: Sequence[Fit],
    config: ProbeConfig,
    on_progress: OnProgress | None = None,
) -> torch.Tensor:
    """Train every fit until it stops early; return the weights with the best dev accuracy, (F, R, P, C).

    Args:
        x_NP: Features with a last column of ones, on the device and in the precision to compute in.
        y_N: Class numbers.
        classes: C.
        fits: The fits, all with the same number of regularisations.
        config: Settings of the protocol.
        on_progress: Called as (fits done, fits in total, detail).
    """
    steps = np.array([-(-len(fit.rows.fit) // config.batch_size) for fit in fits])
    order = np.argsort(-steps, kind="stable")
    first_CP = first_weights(x_NP.shape[1] - 1, classes, config.seed).to(x_NP)
    budget = CPU_BATCH_BYTES if x_NP.device.type == "cpu" else GPU_BATCH_BYTES
    size = max(1, budget // (config.batch_size * x_NP.shape[1] * x_NP.element_size()))
    out = torch.empty((len(fits), len(fits[0].penalties), *first_CP.T.shape), dtype=x_NP.dtype, device=x_NP.device)
    for start in range(0, len(fits), size):
        part = order[start : start + size]
        block = _Block(x_NP, y_N, [fits[number] for number in part], first_CP, config)
        out[torch.from_numpy(part).to(out.device)] = block.run()
        if on_progress is not None:
            on_progress(min(start + size, len(fits)), len(fits), f"{block.passes} passes")
    return out


def first_weights(width: int, classes: int, seed: int) -> torch.Tensor:
    """Return the initial weights of `nn.Linear` for a seed, bias last: (C, P)."""
    with seeded(seed):
        layer = torch.nn.Linear(width, classes)
    return torch.cat([layer.weight.detach(), layer.bias.detach()[:, None]], dim=1)


def hold_out(rows: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the rows of a last fit into training rows and 5 % for early stopping, as the original draws them.

    Raises:
        EvaluationError: 5 % of the rows are less than one row.
    """
    held_out = int(HELD_OUT * len(rows))
    if held_out == 0:
        raise EvaluationError(
            f"{len(rows)} training rows, expected at least {math.ceil(1 / HELD_OUT)} so that {HELD_OUT:.0%} can be "
            "held out. Give a larger set, or run only the protocol `fast`."
        )
    order = np.random.RandomState(seed).permutation(len(rows))
    return rows[order[held_out:]], rows[order[:held_out]]


class _Orders:
    """Random row orders of each epoch; fits of equal length share them."""

    def __init__(self, fits: Sequence[Fit], seed: int) -> None:
        self.sizes = [(fit.held_out_of, len(fit.rows.fit)) for fit in fits]
        self.streams = {size: np.random.RandomState(seed) for size in self.sizes}
        for (held_out_of, _), stream in self.streams.items():
            if held_out_of is not None:
                stream.permutation(held_out_of)

    def draw(self) -> dict[tuple[int | None, int], NDArray[np.int64]]:
        """Draw the next order of every stream."""
        return {size: stream.permutation(size[1]) for size, stream in self.streams.items()}


class _Block:
    """A block of fits that are trained together."""

    def __init__(
        self, x_NP: torch.Tensor, y_N: torch.Tensor, fits: Sequence[Fit], first_CP: torch.Tensor, config: ProbeConfig
    ) -> None:
        self.x_NP, self.fits, self.config = x_NP, list(fits), config
        self.shape = (len(fits[0].penalties), len(first_CP))
        self.target_NC = torch.nn.functional.one_hot(y_N, len(first_CP)).to(x_NP.dtype)
        self.orders = _Orders(fits, config.seed)
        self.steps = [-(-len(fit.rows.fit) // config.batch_size) for fit in fits]
        self.alive = torch.arange(len(fits), device=x_NP.device)
        penalties_FR = torch.tensor([fit.penalties for fit in fits], dtype=x_NP.dtype, device=x_NP.device)
        self.decay = penalties_FR.repeat_interleave(len(first_CP), dim=1)[:, :, None]
        self.weights = first_CP.repeat(len(fits), self.shape[0], 1)  # (F, R·C, P)
        self.mean, self.square = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.done = np.zeros(len(fits))  # Adam steps of each fit
        self.passes = 0
        self.best = self.weights.clone()
        self.accuracy_FR = torch.full(penalties_FR.shape, -1.0, dtype=torch.float64, device=x_NP.device)
        self.misses_FR = torch.zeros(penalties_FR.shape, dtype=torch.int64, device=x_NP.device)

    def run(self) -> torch.Tensor:
        """Train until every fit has stopped: (F, R, P, C)."""
        while len(self.alive) and self.passes <= self.config.max_epoch:
            for _ in range(self.config.epoch_size):
                self._pass()
            self.passes += self.config.epoch_size
            self._evaluate()
        return self.best.view(len(self.best), *self.shape, -1).mT

    def _pass(self) -> None:
        batch = self.config.batch_size
        rows, share = self._batches()
        for step in range(self.steps[0]):
            working = sum(steps > step for steps in self.steps)
            at = slice(step * batch, (step + 1) * batch)
            self._step(rows[:working, at], share[:working, at])

    def _batches(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows of all steps of an epoch, (F, steps·B), and each row's weight in its batch's mean loss."""
        batch, orders = self.config.batch_size, self.orders.draw()
        rows = np.zeros((len(self.alive), self.steps[0] * batch), dtype=np.int64)
        share = np.zeros(rows.shape)
        for fold, number in enumerate(self.alive.tolist()):
            fit = self.fits[number].rows.fit
            rows[fold, : len(fit)] = fit[orders[self.orders.sizes[number]]]
            full = len(fit) // batch * batch  # rows of full batches
            share[fold, :full] = 1 / batch
            share[fold, full : len(fit)] = 1 / max(1, len(fit) - full)
        return torch.from_numpy(rows).to(self.x_NP.device), torch.from_numpy(share).to(self.x_NP)

    def _step(self, rows_FB: torch.Tensor, share_FB: torch.Tensor) -> None:
        count = len(rows_FB)
        x_FBP = self.x_NP.index_select(0, rows_FB.reshape(-1)).view(*rows_FB.shape, -1)
        target_FBC = self.target_NC.index_select(0, rows_FB.reshape(-1)).view(*rows_FB.shape, -1)
        weights = self.weights[:count]
        error = torch.bmm(weights, x_FBP.mT).view(count, *self.shape, -1).softmax(dim=2)  # (F, R, C, B)
        error.sub_(target_FBC.mT[:, None]).mul_(share_FB[:, None, None])
        slope = torch.baddbmm(self.decay[:count] * weights, error.flatten(1, 2), x_FBP)
        self.done[:count] += 1
        self._adam(weights, slope, self.mean[:count], self.square[:count], self.done[:count])

    def _adam(
        self,
        weights: torch.Tensor,
        slope: torch.Tensor,
        mean: torch.Tensor,
        square: torch.Tensor,
        done: NDArray[np.float64],
    ) -> None:
        mean.lerp_(slope, 1 - BETA_1)
        square.mul_(BETA_2).addcmul_(slope, slope, value=1 - BETA_2)
        root = np.sqrt(1 - BETA_2**done)  # both bias corrections in one factor, ε scaled with it
        eps, rate = (
            torch.from_numpy(each).to(weights)[:, None, None] for each in (EPS * root, LR * root / (1 - BETA_1**done))
        )
        weights.addcdiv_(mean, square.sqrt().add_(eps).div_(rate), value=-1)

    def _evaluate(self) -> None:
        """Measure dev accuracy of all fits, store improved weights, drop folds whose fits have all stopped."""
        alive = self.alive
        accuracy_FR = self._dev_accuracy()
        better = accuracy_FR > self.accuracy_FR[alive]
        stopped = self.misses_FR[alive] > self.config.tenacity  # still trained with its fold, but ignored
        better &= ~stopped
        rows = better.repeat_interleave(self.shape[1], dim=1)[:, :, None]
        self.best[alive] = torch.where(rows, self.weights, self.best[alive])
        self.accuracy_FR[alive] = torch.where(better, accuracy_FR, self.accuracy_FR[alive])
        self.misses_FR[alive] += (~better).long()
        working = (self.misses_FR[alive] <= self.config.tenacity).any(dim=1)
        if not working.all():
            self._keep(working)

    def _keep(self, working: torch.Tensor) -> None:
        self.alive = self.alive[working]
        for name in ("weights", "mean", "square", "decay"):
            setattr(self, name, getattr(self, name)[working])
        mask = working.tolist()
        self.steps = list(itertools.compress(self.steps, mask))
        self.done = self.done[mask]

    def _dev_accuracy(self) -> torch.Tensor:
        out = torch.empty((len(self.alive), self.shape[0]), dtype=torch.float64, device=self.x_NP.device)
        for fold, number in enumerate(self.alive.tolist()):
            dev = torch.from_numpy(self.fits[number].rows.dev).to(self.x_NP.device)
            scores = (self.weights[fold] @ self.x_NP[dev].T).view(*self.shape, -1)
            right = scores.argmax(dim=1) == self.target_NC[dev].argmax(dim=1)
            out[fold] = right.double().mean(dim=1)
        return out
