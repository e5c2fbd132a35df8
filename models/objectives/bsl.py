"""BSL: each view predicts the target's vector of the other (paper section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from models.objectives.contrastive import contrastive_loss
from models.objectives.precision import full_precision
from models.objectives.queue import VectorQueue
from models.objectives.ranking import ranking_loss
from models.objectives.target_contrast import target_contrast
from models.objectives.two_branch import TwoBranch

if TYPE_CHECKING:
    from models.encoder.network import Encoder
    from models.objectives.two_branch_config import BSLConfig


class BSL(TwoBranch):
    """The published objective, with the released code's scale and the deviations of BSL+ as options."""

    parts = (*TwoBranch.parts, "queue")

    def __init__(self, online: Encoder, config: BSLConfig) -> None:
        super().__init__(online, config)
        self.config = config
        self.queue = VectorQueue(config.queue, online.width)

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Equation 2, scaled and joined by further terms as configured."""
        config = self.config
        z1_BD, z2_BD = self.predictor(h1_BD), self.predictor(h2_BD, 2)
        loss = bootstrap_loss(z1_BD, z2_BD, t1_BD, t2_BD)
        if config.loss_scale == "released":
            loss = 4.0 + 4.0 * loss  # [2 − 2cos] + [2 − 2cos], not halved
        if config.contrastive_weight > 0:
            loss = loss + config.contrastive_weight * contrastive_loss(h1_BD, h2_BD, config.temperature)
        if config.target_contrastive_weight > 0:
            loss = loss + config.target_contrastive_weight * self._target_contrast((z1_BD, z2_BD), (t1_BD, t2_BD))
        if config.ranking_weight > 0:
            loss = loss + config.ranking_weight * ranking_loss((h1_BD, h2_BD), (t1_BD, t2_BD), config)
        return loss

    def _target_contrast(
        self, z: tuple[torch.Tensor, torch.Tensor], t: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """Both predictions against the other view's targets; then these take places in the queue."""
        # With `dims` the queue has no row, but a width that must be that of the cut vectors.
        queue_QD, temperature = self.queue.vectors[:, : z[0].shape[1]], self.config.temperature
        first = target_contrast(z[0], t[1], queue_QD, temperature)
        second = target_contrast(z[1], t[0], queue_QD, temperature)
        if self.training:
            self.queue.push(torch.cat(t))
        return 0.5 * (first + second)


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
