"""Redundancy reduction in BSL's two branches: VICReg and Barlow Twins.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from models.objectives.bsl import TwoBranch
from models.objectives.objective import full_precision

if TYPE_CHECKING:
    from models.objectives.config import BarlowConfig, VICRegConfig

VARIANCE_FLOOR = 1e-4  # VICReg: added to variances before the root, whose slope is infinite at 0 (published value)
CORRELATION_FLOOR = 1e-5  # Barlow Twins: added to variances before the division, as batch normalisation does


class VICReg(TwoBranch):
    """VICReg: L = λ · ‖z − t‖² + μ · ½ hinge(std z) + ν · covariances(z), summed over both views.

    Source: Bardes, Ponce and LeCun, ICLR 2022, equations 1 to 6, in BSL's two branches as UNSEE uses it (Çağatan,
    2024). Each prediction's gradient equals that of VICReg's code (its weights, terms and factors ½), with the other
    view's fixed target as second branch. The distances of both predictions are summed, as in UNSEE's code.

    Example:
        >>> objective = VICReg(encoder, VICRegConfig(k=2))
        >>> objective(batch, batch_tokens=512).item() > 0  # (B, D) vectors of both views → a scalar
        True
    """

    config: VICRegConfig

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Return the three weighted terms, summed over both views."""
        return self._branch(self.predictor(h1_BD), t2_BD) + self._branch(self.predictor(h2_BD, 2), t1_BD)

    def _branch(self, z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
        # No variance and covariance of the target: no gradient flows into it, so they are constants.
        weights = self.config
        return (
            weights.invariance * distance(z_BD, t_BD)
            + weights.variance * 0.5 * variance_hinge(z_BD)
            + weights.covariance * covariance_penalty(z_BD)
        )


distance = full_precision(functional.mse_loss)
"""Mean squared difference of two (B, D) over all elements, as in VICReg's code: ≥ 0."""


@full_precision
def variance_hinge(z_BD: torch.Tensor) -> torch.Tensor:
    """Return the mean over dimensions of max(0, 1 − standard deviation) (VICReg's equation 1): in [0, 1]."""
    return functional.relu(1.0 - (z_BD.var(dim=0) + VARIANCE_FLOOR).sqrt()).mean()


@full_precision
def covariance_penalty(z_BD: torch.Tensor) -> torch.Tensor:
    """Return the sum of squared covariances between different dimensions, divided by D (VICReg's equation 4): ≥ 0."""
    covariance_DD = z_BD.T.cov()
    squared = covariance_DD.square()
    return (squared.sum() - squared.diagonal().sum()) / z_BD.shape[1]


class Barlow(TwoBranch):
    """Barlow Twins: L = Σᵢ (1 − Cᵢᵢ)² + λ Σᵢ Σⱼ≠ᵢ Cᵢⱼ², summed over both views.

    C is the correlation of a prediction's dimensions with those of the other view's target. Source: Zbontar et al.,
    ICML 2021, equation 1, in BSL's two branches as UNSEE uses it (Çağatan, 2024).

    Example:
        >>> objective = Barlow(encoder, BarlowConfig(k=2))
        >>> objective(batch, batch_tokens=512).item() > 0  # (B, D) vectors of both views → a scalar
        True
    """

    config: BarlowConfig

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Return the distance of the cross-correlation from the identity, summed over both views."""
        one = cross_correlation_loss(self.predictor(h1_BD), t2_BD, self.config.redundancy)
        return one + cross_correlation_loss(self.predictor(h2_BD, 2), t1_BD, self.config.redundancy)


@full_precision
def cross_correlation_loss(z_BD: torch.Tensor, t_BD: torch.Tensor, redundancy: float) -> torch.Tensor:
    """Return Σᵢ (1 − Cᵢᵢ)² + λ Σᵢ Σⱼ≠ᵢ Cᵢⱼ² (equation 1), where C correlates the dimensions of z with those of t."""
    correlation_DD = _standardised(z_BD).T @ _standardised(t_BD) / len(z_BD)
    squared = correlation_DD.square()
    diagonal = correlation_DD.diagonal()
    return (1.0 - diagonal).square().sum() + redundancy * (squared.sum() - diagonal.square().sum())


def _standardised(x_BD: torch.Tensor) -> torch.Tensor:
    variance_D, mean_D = torch.var_mean(x_BD, dim=0, unbiased=False)
    return (x_BD - mean_D) / (variance_D + CORRELATION_FLOOR).sqrt()
