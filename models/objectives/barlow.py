"""Barlow Twins (Zbontar et al., 2021) in BSL's two-branch network, as UNSEE uses it.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from models.objectives.precision import full_precision
from models.objectives.two_branch import TwoBranch

if TYPE_CHECKING:
    from models.encoder.network import Encoder
    from models.objectives.two_branch_config import BarlowConfig

FLOOR = 1e-5  # added to variances before the division, as batch normalisation does


class Barlow(TwoBranch):
    """Each dimension of a prediction correlates with the same one of the other view's target, and no other."""

    def __init__(self, online: Encoder, config: BarlowConfig) -> None:
        super().__init__(online, config)
        self.redundancy = config.redundancy

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Sum over both views of the cross-correlation's distance to the identity."""
        one = cross_correlation_loss(self.predictor(h1_BD), t2_BD, self.redundancy)
        return one + cross_correlation_loss(self.predictor(h2_BD, 2), t1_BD, self.redundancy)


@full_precision
def cross_correlation_loss(z_BD: torch.Tensor, t_BD: torch.Tensor, redundancy: float) -> torch.Tensor:
    """Σᵢ (1 − Cᵢᵢ)² + λ Σᵢ Σⱼ≠ᵢ Cᵢⱼ², C the correlation of z's and t's dimensions over the batch (their equation 1)."""
    correlation_DD = _standardised(z_BD).T @ _standardised(t_BD) / len(z_BD)
    squared = correlation_DD.square()
    diagonal = correlation_DD.diagonal()
    return (1.0 - diagonal).square().sum() + redundancy * (squared.sum() - diagonal.square().sum())


def _standardised(x_BD: torch.Tensor) -> torch.Tensor:
    variance_D, mean_D = torch.var_mean(x_BD, dim=0, unbiased=False)
    return (x_BD - mean_D) / (variance_D + FLOOR).sqrt()
