"""The predictor p_θ on top of the online encoder (paper section 4, "Implementation").

Shapes: B sentences, D encoder width, K = kD hidden width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from torch import nn

from models.objectives.nested import tied

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from models.objectives.two_branch_config import TwoBranchConfig

Order = tuple[int, ...]
ORDERS: Final[Mapping[str, tuple[Order, Order]]] = {
    "paper": ((0,), (0,)),
    "released": ((0, 1, 2), (0, 1, 2)),
    "released-2021": ((0, 1, 2), (0, 1, 1)),
}
"""The blocks that each of the two views passes, in order; BYOLoss.py calls them online_predictor_1, _2 and _3."""


class Predictor(nn.Module):
    """h (B, D) → z (B, D).

    `paper`: one block D→K→K→D, normalisation and ReLU after both hidden linears.
    `released`: three chained blocks of that shape, normalisation after the first linear of each only.
    `released-2021`: as `released`, but view 2 passes the second block twice and never the third.
    """

    def __init__(self, width: int, config: TwoBranchConfig) -> None:
        super().__init__()
        self._width, hidden = width, config.k * width
        self._orders = ORDERS[config.predictor]
        blocks = max(self._orders[0]) + 1
        self.blocks = nn.Sequential(*(_block(width, hidden, config) for _ in range(blocks)))

    def forward(self, h_BD: torch.Tensor, view: Literal[1, 2] = 1) -> torch.Tensor:
        """Predict the other view's target vectors, (B, D), from those of view 1 or 2; the first d from the first d."""
        return tied(self._whole, h_BD, self._width, view)

    def _whole(self, h_BD: torch.Tensor, view: Literal[1, 2]) -> torch.Tensor:
        for block in self._orders[view - 1]:
            h_BD = self.blocks[block](h_BD)
        return h_BD


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
