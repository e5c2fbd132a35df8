"""BSL: each view predicts the target's vector of the other (paper section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.bsl.bootstrap import Bootstrap
from models.bsl.loss import bootstrap_loss, contrastive_loss

if TYPE_CHECKING:
    import torch

    from models.bsl.config import BSLConfig
    from models.encoder.transformer import Encoder


class BSL(Bootstrap):
    """The published objective, with the released code's scale and the contrastive deviation as options."""

    def __init__(self, online: Encoder, config: BSLConfig) -> None:
        super().__init__(online, config)
        self.config = config

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Equation 2, scaled and joined by the contrastive term as configured."""
        loss = bootstrap_loss(self.predictor(h1_BD), self.predictor(h2_BD), t1_BD, t2_BD)
        if self.config.loss_scale == "released":
            loss = 4.0 + 4.0 * loss  # [2 − 2cos] + [2 − 2cos], not halved
        if self.config.contrastive_weight > 0:
            loss = loss + self.config.contrastive_weight * contrastive_loss(h1_BD, h2_BD, self.config.temperature)
        return loss
