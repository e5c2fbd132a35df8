"""Statistics of BSL's target vectors, a deviation from the paper that is off by default.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from bsl.models.objectives.bsl_config import BSLConfig

FLOOR = 1e-6  # smallest divisor, so that a constant dimension stays finite


class TargetNorm(nn.Module):
    """Remove a running mean (and spread) from the target's vectors.

    Mean-pooled vectors of a raw masked language model share one dominant direction. With it in the target, a constant
    prediction reaches cosine 0.97 and the encoder forgets the differences between sentences. DINO (Caron et al., 2021)
    centres for the same reason.

    Example:
        >>> norm = TargetNorm(2, BSLConfig(target_norm="center"))
        >>> norm(torch.tensor([[1.0, 4.0], [3.0, 4.0]]))
        tensor([[-1.,  0.],
                [ 1.,  0.]])
    """

    mean: torch.Tensor
    variance: torch.Tensor
    batches: torch.Tensor

    def __init__(self, width: int, config: BSLConfig) -> None:
        super().__init__()
        self.kind = config.target_norm
        self.momentum = config.target_norm_momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, t_BD: torch.Tensor) -> torch.Tensor:
        """Update the statistics with this batch, then remove them: (B, D)."""
        if self.kind == "none":
            return t_BD
        if self.training:
            self._update(t_BD)
        centred_BD = t_BD - self.mean
        return centred_BD if self.kind == "center" else centred_BD / self.variance.sqrt().clamp_min(FLOOR)

    def _update(self, t_BD: torch.Tensor) -> None:
        # The first batch replaces the arbitrary initial values; later ones are averaged in.
        share = torch.where(self.batches == 0, 1.0, 1.0 - self.momentum)
        self.mean.lerp_(t_BD.mean(dim=0), share)
        self.variance.lerp_(t_BD.var(dim=0, unbiased=False), share)
        self.batches += 1
