"""VICReg (Bardes et al., 2022) in BSL's two-branch network, as UNSEE uses it.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

from models.objectives.precision import full_precision
from models.objectives.two_branch import TwoBranch

if TYPE_CHECKING:
    import torch

    from models.encoder.network import Encoder
    from models.objectives.two_branch_config import VICRegConfig

FLOOR = 1e-4  # added to variances before the root, whose slope is infinite at 0 (published value)


class VICReg(TwoBranch):
    """Predictions near the target of the other view, each dimension kept spread, dimensions decorrelated.

    Each prediction has the gradient of VICReg's own loss (weights, terms and halves of its code) whose second branch is
    the target of the other view, held fixed. The sum holds the distances of both predictions, as UNSEE's code does.
    """

    def __init__(self, online: Encoder, config: VICRegConfig) -> None:
        super().__init__(online, config)
        self.config = config

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Sum over both views of the three weighted terms."""
        return self._branch(self.predictor(h1_BD), t2_BD) + self._branch(self.predictor(h2_BD, 2), t1_BD)

    def _branch(self, z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
        # Variance and covariance of the target are left out: no gradient flows into it, so they are constants here.
        weights = self.config
        return (
            weights.invariance * distance(z_BD, t_BD)
            + weights.variance * 0.5 * variance_hinge(z_BD)
            + weights.covariance * covariance_penalty(z_BD)
        )


@full_precision
def distance(z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
    """Mean squared difference of all elements, as their code takes it: ≥ 0."""
    return functional.mse_loss(z_BD, t_BD)


@full_precision
def variance_hinge(z_BD: torch.Tensor) -> torch.Tensor:
    """Mean over dimensions of how far the standard deviation falls short of 1 (their equation 1): in [0, 1]."""
    return functional.relu(1.0 - (z_BD.var(dim=0) + FLOOR).sqrt()).mean()


@full_precision
def covariance_penalty(z_BD: torch.Tensor) -> torch.Tensor:
    """Sum of squared covariances between different dimensions, over D (their equation 4): ≥ 0."""
    covariance_DD = z_BD.T.cov()
    squared = covariance_DD.square()
    return (squared.sum() - squared.diagonal().sum()) / z_BD.shape[1]
