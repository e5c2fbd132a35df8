"""Losses in full precision, whatever the networks below them compute in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")


def full_precision(loss: Callable[P, torch.Tensor]) -> Callable[P, torch.Tensor]:
    """Run a loss outside autocast, on floating tensors widened to fp32 at least (float64 stays).

    Widening alone is not enough: inside autocast a matrix product of fp32 tensors is taken in bf16, whose third digit
    divided by a temperature of 0.05 is an error in the first.
    """

    @functools.wraps(loss)
    def wide(*args: P.args, **kwargs: P.kwargs) -> torch.Tensor:
        devices = {value.device.type for value in args if isinstance(value, torch.Tensor)}
        with torch.autocast(devices.pop(), enabled=False):
            return loss(*(_widened(value) for value in args), **kwargs)  # type: ignore[arg-type]

    return wide


def _widened(value: object) -> object:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.to(torch.promote_types(value.dtype, torch.float32))
