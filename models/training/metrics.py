"""Metrics of training: rows of the log, losses read late from the device, and throughput.

Reading a number at each step would make a GPU wait at each step.
"""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Final

import torch

from bsl.models.encoder.network import Encoder
from bsl.models.runtime.device import processes, wait
from bsl.storage.artifacts.schemas import TRAINING_LOG

if TYPE_CHECKING:
    from bsl.models.objectives.objective import Batch, Objective

READ_EVERY: Final = 16  # steps between two readings from a GPU; a CPU is read at each step

# Part of the device's name → 16-bit FLOP/s without sparsity, by the makers' data sheets; the first match counts.
# The values are for bf16, except on T4 and V100, which have fp16 only.
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


def log_row(step: int, **values: float | None) -> LogRow:
    """Return a row of the log; values that are not given are None."""
    return dict.fromkeys(TRAINING_LOG) | {"step": step} | values


class DeferredMetrics:
    """Losses and gradient norms that are not yet read from the device."""

    def __init__(self, device: torch.device) -> None:
        self._every = 1 if device.type == "cpu" else READ_EVERY
        self._rows: list[LogRow] = []
        self._figures: list[torch.Tensor] = []

    def add(self, row: LogRow, loss: torch.Tensor, grad_norm: torch.Tensor) -> None:
        """Add a step's metrics, scalars on the device, which a later `read` puts into the step's row of the log.

        Raises:
            FloatingPointError: As `read`, if a reading is due.
        """
        self._rows.append(row)
        self._figures += [loss.detach(), grad_norm]
        if len(self._rows) >= self._every:
            self.read()

    def read(self) -> None:
        """Fill in the rows that lack their metrics.

        Raises:
            FloatingPointError: A value is not finite; the arguments are step, name and value of the first such one. All
                later steps are invalid, and must not be saved in a snapshot.
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
        FloatingPointError: The value is not finite; the arguments are step, quantity and value.
    """
    number = float(value.detach() if isinstance(value, torch.Tensor) else value)
    if not math.isfinite(number):
        raise FloatingPointError(step, quantity, number)


class Throughput:
    """Throughput of the steps of one call, without evaluations, snapshots and reports.

    The clock runs over many steps and stops only when the device has finished them. A single GPU step cannot be timed,
    because it returns when it is queued, before it is computed.
    """

    def __init__(self, objective: Objective) -> None:
        # Products of one token with the encoders' weights in a step, and the weights of all networks above them.
        self._encoders = self._heads = 0
        for name, module in objective.named_children():
            weights = sum(part.weight.numel() for part in module.modules() if isinstance(part, torch.nn.Linear))
            if isinstance(module, Encoder):
                self._encoders += weights * (3 if name == "online" else 1)  # forward and backward, or forward alone
            else:
                self._heads += weights
        self._device = objective.online.device
        self._peak = peak_flops(self._device)
        self._started: float | None = None
        self.pairs, self.tokens, self.seconds = 0, 0, 0.0

    def start(self) -> None:
        """Start the clock, unless it is running."""
        if self._started is None:
            wait(self._device)
            self._started = time.perf_counter()

    def stop(self) -> None:
        """Wait for the device, then stop the clock; call this before other work and before reading a rate."""
        if self._started is not None:
            wait(self._device)
            self.seconds += time.perf_counter() - self._started
            self._started = None

    def add(self, batch: Batch) -> None:
        """Count one step, which the device may not have finished."""
        self.pairs += len(batch)
        self.tokens += int(batch.tokens.lengths_of(batch.view_1).sum() + batch.tokens.lengths_of(batch.view_2).sum())

    @property
    def pairs_per_s(self) -> float:
        """Pairs per second; 0 before the first step."""
        return self.pairs / self.seconds if self.seconds > 0 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Real tokens of both views per second; 0 before the first step."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def mfu(self) -> float | None:
        """Model FLOP utilisation: FLOP/s that the method needs ÷ declared 16-bit peak; None where unknown.

        It counts 2 FLOP per matrix weight and pass: online encoder and heads forward and backward (3 passes), the
        target forward (1 pass). Attention's products and padded tokens do not count.
        """
        if self._peak is None or self.seconds == 0:
            return None
        return self.flops(self.tokens, self.pairs) / self.seconds / (self._peak * processes())

    def flops(self, tokens: float, pairs: float) -> float:
        """Return the FLOP that the method needs for this number of tokens of both views and of pairs."""
        return 2 * self._encoders * tokens + 6 * self._heads * 2 * pairs


def peak_flops(device: torch.device) -> float | None:
    """Return the declared peak FLOP/s of a device; None for a CPU and for GPUs that are not in the table."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((flops for words, flops in PEAK_FLOPS.items() if re.search(rf"\b{words}\b", name)), None)
