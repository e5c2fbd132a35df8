"""Taking the running mean (and spread) out of the target's vectors: a deviation from the paper.

Mean-pooled vectors of a raw masked language model share one dominant direction. With it in the target, a constant
prediction reaches cosine 0.97 and the encoder forgets what tells sentences apart. Centring is what DINO (Caron et
al., 2021) uses against the same failure.

Shapes: B sentences, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from models.objectives.two_branch_config import TwoBranchConfig

FLOOR = 1e-6  # smallest standard deviation divided by: a constant dimension stays finite


class TargetNorm(nn.Module):
    """Running statistics of the target's vectors over batches, and their removal."""

    mean: torch.Tensor
    variance: torch.Tensor
    batches: torch.Tensor

    def __init__(self, width: int, config: TwoBranchConfig) -> None:
        super().__init__()
        self.kind = config.target_norm
        self.momentum = config.target_norm_momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, h_BD: torch.Tensor) -> torch.Tensor:
        """Update the statistics with this batch, then remove them: (B, D)."""
        if self.kind == "none":
            return h_BD
        if self.training:
            self._update(h_BD)
        centred_BD = h_BD - self.mean
        return centred_BD if self.kind == "center" else centred_BD / self.variance.sqrt().clamp_min(FLOOR)

    def _update(self, h_BD: torch.Tensor) -> None:
        # The first batch replaces the arbitrary initial values; later ones are averaged in.
        share = torch.where(self.batches == 0, 1.0, 1.0 - self.momentum)
        self.mean.lerp_(h_BD.mean(dim=0), share)
        self.variance.lerp_(h_BD.var(dim=0, unbiased=False), share)
        self.batches += 1
