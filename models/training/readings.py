"""A step's figures, read from the device when there is time: a GPU that is asked at each step waits at each step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from models.training.run import LogRow

READ_EVERY: Final = 16  # steps of a GPU between two readings; a CPU has nothing to wait for


@dataclass(frozen=True)
class StepFigures:
    """A step's figures, the computed ones scalars on the device; whoever turns them into numbers waits for the step."""

    loss: torch.Tensor
    grad_norm: torch.Tensor
    lr: float
    momentum: float | None


class Readings:
    """Losses and gradient norms that were computed and not yet looked at."""

    def __init__(self, device: torch.device) -> None:
        self._every = 1 if device.type == "cpu" else READ_EVERY
        self._rows: list[LogRow] = []
        self._figures: list[torch.Tensor] = []

    def add(self, row: LogRow, figures: StepFigures) -> None:
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
