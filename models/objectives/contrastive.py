"""Contrastive objectives: the other sentences of the batch are negatives, and there is no target network.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from bsl.models.encoder.static import StaticTable
from bsl.models.errors import TrainingError
from bsl.models.objectives.anchored import AnchoredObjective
from bsl.models.objectives.distillation import similarity_divergence
from bsl.models.objectives.info_nce import info_nce, nt_xent
from bsl.models.objectives.objective import VectorObjective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.encoder.network import Encoder
    from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
    from bsl.models.objectives.objective import Batch, VectorLoss


class Contrastive(AnchoredObjective):
    """NT-Xent: the two views of a sentence attract, all other sentences of the batch repel (BSL section 4.4, Table 7).

    Source: Chen et al., 2020 (SimCLR), equation 1. With `anchor_weight`, a second term is the KL divergence of a
    sentence's similarities to the rest of the batch from those before training, by a frozen copy of the encoder.

    Example:
        >>> objective = Contrastive(encoder, ContrastiveConfig(temperature=0.05))
        >>> objective(batch).item() > 0  # (2B, D) vectors → a scalar
        True
    """

    config: ContrastiveConfig

    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return `stacked_vectors` and `loss`."""
        return self.stacked_vectors(batch), self.loss

    def loss(self, h_2BD: torch.Tensor, t_2BD: torch.Tensor | None = None) -> torch.Tensor:
        """Return the loss of both views' vectors h, anchored to t: a scalar ≥ 0."""
        temperature = self.config.temperature
        h1_BD, h2_BD = h_2BD.chunk(2)
        loss = nt_xent(h1_BD, h2_BD, temperature)
        if t_2BD is None:
            return loss
        divergences = [
            similarity_divergence(h_BD, t_BD, t_BD[:0], temperature, temperature)
            for h_BD, t_BD in zip((h1_BD, h2_BD), t_2BD.chunk(2), strict=True)
        ]
        return loss + self.config.anchor_weight * torch.stack(divergences).mean()


class SimCSE(VectorObjective):
    """InfoNCE of the first view encoded twice under different dropout; second views are not used.

    Source: Gao, Yao and Chen, EMNLP 2021, equation 4. The head above the encoder is dropped after training.

    Raises:
        TrainingError: The encoder has no dropout, so that both views would be the same vector.

    Example:
        >>> objective = SimCSE(encoder, SimCSEConfig(temperature=0.05))
        >>> objective(batch).item() > 0  # (2B, D) vectors → a scalar
        True
    """

    config: SimCSEConfig

    def __init__(self, online: Encoder, config: SimCSEConfig) -> None:
        super().__init__(online, config)
        if not online.has_dropout:
            is_table = isinstance(online.backbone, StaticTable)
            remedy = "Choose a transformer" if is_table else "Set encoder.dropout, for example to 0.1"
            raise TrainingError(
                f"objective simcse: {online.config.model} has no dropout, which makes the two views. {remedy}."
            )
        self.head = (
            nn.Sequential(nn.Linear(online.width, online.width), nn.Tanh()) if config.head == "mlp" else nn.Identity()
        )

    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return the stacked vectors (2B, D) of the first views, encoded twice, and `loss`."""
        rows = np.concatenate([batch.view_1, batch.view_1])
        return [self.online.embed_rows(batch.tokens, rows)], self.loss

    def loss(self, h_2BD: torch.Tensor) -> torch.Tensor:
        """Return the loss of the stacked vectors of both passes: a scalar ≥ 0."""
        z1_BD, z2_BD = self.head(self.widened(h_2BD))[:, : h_2BD.shape[1]].chunk(2)
        return info_nce(z1_BD, z2_BD, self.config.temperature)
