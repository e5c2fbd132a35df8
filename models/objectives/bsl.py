"""BSL: each view predicts the target's vector of the other (paper section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

from models.objectives.contrastive import contrastive_loss
from models.objectives.precision import full_precision
from models.objectives.two_branch import TwoBranch

if TYPE_CHECKING:
    import torch

    from models.encoder.network import Encoder
    from models.objectives.two_branch_config import BSLConfig


class BSL(TwoBranch):
    """The published objective, with the released code's scale and the contrastive deviation as options."""

    def __init__(self, online: Encoder, config: BSLConfig) -> None:
        super().__init__(online, config)
        self.config = config

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Equation 2, scaled and joined by the contrastive term as configured."""
        loss = bootstrap_loss(self.predictor(h1_BD), self.predictor(h2_BD, 2), t1_BD, t2_BD)
        if self.config.loss_scale == "released":
            loss = 4.0 + 4.0 * loss  # [2 − 2cos] + [2 − 2cos], not halved
        if self.config.contrastive_weight > 0:
            loss = loss + self.config.contrastive_weight * contrastive_loss(h1_BD, h2_BD, self.config.temperature)
        return loss


@full_precision
def negative_cosine(z_BD: torch.Tensor, h_BD: torch.Tensor) -> torch.Tensor:
    """D(z, h) = −⟨z/‖z‖, h/‖h‖⟩ for each pair (equation 1): (B,), in [-1, 1], −1 where the two point the same way."""
    return -functional.cosine_similarity(z_BD, h_BD, dim=-1)


def bootstrap_loss(z1_BD: torch.Tensor, z2_BD: torch.Tensor, h1_BD: torch.Tensor, h2_BD: torch.Tensor) -> torch.Tensor:
    """L = ½ D(z₁, h₂) + ½ D(z₂, h₁), averaged over the batch (equation 2): a scalar in [-1, 1].

    Args:
        z1_BD: Predictions from view 1 (online network).
        z2_BD: Predictions from view 2 (online network).
        h1_BD: Target vectors of view 1; no gradient flows into them.
        h2_BD: Target vectors of view 2; no gradient flows into them.
    """
    one = negative_cosine(z1_BD, h2_BD.detach())
    two = negative_cosine(z2_BD, h1_BD.detach())
    return (0.5 * one + 0.5 * two).mean()
