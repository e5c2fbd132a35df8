"""The predictor p_θ on top of the online encoder (paper section 4, "Implementation").

Shapes: B sentences, D encoder width, K = kD hidden width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    import torch

    from models.objectives.config import TwoBranchConfig

RELEASED_BLOCKS = 3  # BYOLoss.py: online_predictor_1, _2 and _3


class Predictor(nn.Module):
    """h (B, D) → z (B, D).

    `paper`: one block D→K→K→D, normalisation and ReLU after both hidden linears.
    `released`: three chained blocks of that shape, normalisation after the first linear of each only.
    """

    def __init__(self, width: int, config: TwoBranchConfig) -> None:
        super().__init__()
        hidden = config.k * width
        blocks = 1 if config.predictor == "paper" else RELEASED_BLOCKS
        self.blocks = nn.Sequential(*(_block(width, hidden, config) for _ in range(blocks)))

    def forward(self, h_BD: torch.Tensor) -> torch.Tensor:
        """Predict the other view's target vector, (B, D)."""
        z_BD: torch.Tensor = self.blocks(h_BD)
        return z_BD


def _block(width: int, hidden: int, config: TwoBranchConfig) -> nn.Sequential:
    second = [_norm(hidden, config)] if config.predictor == "paper" else []
    return nn.Sequential(
        nn.Linear(width, hidden),
        _norm(hidden, config),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        *second,
        nn.ReLU(),
        nn.Linear(hidden, width),
    )


def _norm(hidden: int, config: TwoBranchConfig) -> nn.Module:
    if config.norm == "batch":
        return nn.BatchNorm1d(hidden)
    return nn.LayerNorm(hidden) if config.norm == "layer" else nn.Identity()
