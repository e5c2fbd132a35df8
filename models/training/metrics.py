"""Metrics of training: the log's rows, losses read from the device when there is time, and throughput.

A GPU that is asked for a number at each step waits at each step.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import torch

from models.runtime.device import processes, wait

if TYPE_CHECKING:
    from models.objectives.objective import Batch, Objective

READ_EVERY: Final = 16  # steps of a GPU between two readings; a CPU has nothing to wait for

# Dense FLOP/s in 16 bits, without sparsity, that the makers' data sheets declare, by words of the device's name; the
# first that fits counts. bf16, but fp16 for T4 and V100, which have no bf16.
PEAK_FLOPS = {
    "GB200": 2500e12,
    "B200": 2250e12,
    "H200 NVL": 835e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L40": 181e12,
    "L4": 121e12,
    "A10": 125e12,
    "T4": 65e12,
    "V100-PCIE": 112e12,
    "V100": 125e12,
}

LogRow = dict[str, float | int | None]

EVALUATED = ("alignment", "uniformity", "std", "effective_rank", "dev_spearman")
LOG_SCHEMA = pl.Schema(
    {"step": pl.UInt32()} | dict.fromkeys(("loss", "lr", "momentum", "grad_norm", *EVALUATED), pl.Float64())
)


def log_row(step: int, **values: float | None) -> LogRow:
    """A row of the log; what is not given is None."""
    return dict.fromkeys(LOG_SCHEMA) | {"step": step} | values


@dataclass(frozen=True)
class StepMetrics:
    """A step's figures, the computed ones scalars on the device; whoever turns them into numbers waits for the step."""

    loss: torch.Tensor
    grad_norm: torch.Tensor
    lr: float
    momentum: float | None


class DeferredMetrics:
    """Losses and gradient norms that were computed and not yet looked at."""

    def __init__(self, device: torch.device) -> None:
        self._every = 1 if device.type == "cpu" else READ_EVERY
        self._rows: list[LogRow] = []
        self._figures: list[torch.Tensor] = []

    def add(self, row: LogRow, figures: StepMetrics) -> None:
        """Take over a step's figures, which a later `read` puts into its row of the log.

        Raises:
            FloatingPointError: as `read`, if that is due.
        """
        self._rows.append(row)
        self._figures += [figures.loss.detach(), figures.grad_norm]
        if len(self._rows) >= self._every:
            self.read()

    def read(self) -> None:
        """Fill in the rows that lack their figures.

        Raises:
            FloatingPointError: One is not finite; the arguments are its step, name and value, of the first one if
                there are several. No step after it counts, and no snapshot may be made of them.
        """
        if not self._rows:
            return
        values, rows = torch.stack(self._figures).tolist(), self._rows
        self._rows, self._figures = [], []
        for row, loss, norm in zip(rows, values[::2], values[1::2], strict=True):
            row.update(loss=loss, grad_norm=norm)
            check_finite(int(row["step"] or 0), loss, "loss")
            check_finite(int(row["step"] or 0), norm, "gradient norm")


def check_finite(step: int, value: torch.Tensor | float, quantity: str) -> None:
    """Refuse a scalar that is NaN or infinite.

    Raises:
        FloatingPointError: It is; the arguments are step, quantity and value.
    """
    number = float(value.detach() if isinstance(value, torch.Tensor) else value)
    if not math.isfinite(number):
        raise FloatingPointError(step, quantity, number)


class Throughput:
    """Steps of one call and their seconds; evaluations, snapshots and reports do not count.

    The clock runs over many steps, and stops only once the device has finished them: a GPU returns from a step that it
    has queued and not computed.
    """

    def __init__(self, objective: Objective) -> None:
        weights = {name: _matmul_weights(module) for name, module in objective.saved_modules().items()}
        self._online, self._target = weights.pop("online"), weights.pop("target", 0)
        self._heads = sum(weights.values())
        self._device = objective.online.device
        self._peak = peak_flops(self._device)
        self._started: float | None = None
        self.pairs, self.tokens, self.seconds = 0, 0, 0.0

    def start(self) -> None:
        """Start the clock, unless it runs."""
        if self._started is None:
            wait(self._device)
            self._started = time.perf_counter()

    def stop(self) -> None:
        """Wait for the device, then stop the clock; before anything that is no step, and before a rate is read."""
        if self._started is not None:
            wait(self._device)
            self.seconds += time.perf_counter() - self._started
            self._started = None

    def add(self, batch: Batch) -> None:
        """Count one step, whose work need not be finished."""
        self.pairs += len(batch)
        self.tokens += int(batch.tokens.lengths_of(batch.view_1).sum() + batch.tokens.lengths_of(batch.view_2).sum())

    @property
    def pairs_per_s(self) -> float:
        """Pairs a second; 0 before the first step."""
        return self.pairs / self.seconds if self.seconds > 0 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Real tokens of both views a second; 0 before the first step."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def mfu(self) -> float | None:
        """Model FLOP utilisation: multiplications that the method needs ÷ declared 16-bit peak; None where unknown.

        Counted are the weights of matrices, 2 FLOP each: the online encoder and what follows it forwards and backwards
        (3 passes), the target forwards; not attention's products, nor what a padded token would cost.
        """
        if self._peak is None or self.seconds == 0:
            return None
        return self.flops(self.tokens, self.pairs) / self.seconds / (self._peak * processes())

    def flops(self, tokens: float, pairs: float) -> float:
        """Multiplications and additions that the method needs for so many tokens of both views, and pairs."""
        return (6 * self._online + 2 * self._target) * tokens + 6 * self._heads * 2 * pairs


def peak_flops(device: torch.device) -> float | None:
    """The declared peak of a device; None for a CPU and for GPUs that the table does not know."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((flops for words, flops in PEAK_FLOPS.items() if re.search(rf"\b{words}\b", name)), None)


def _matmul_weights(network: torch.nn.Module) -> int:
    return sum(m.weight.numel() for m in network.modules() if isinstance(m, torch.nn.Linear))
