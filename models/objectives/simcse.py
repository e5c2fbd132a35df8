"""Unsupervised SimCSE (Gao et al., 2021): a sentence's two views differ by dropout alone.

Shapes: B sentences, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from models.errors import TrainingError
from models.objectives.base import Objective
from models.objectives.nested import nested, tied
from models.objectives.precision import full_precision

if TYPE_CHECKING:
    from models.encoder.network import Encoder
    from models.objectives.batch import Batch
    from models.objectives.contrastive_config import SimCSEConfig


class SimCSE(Objective):
    """Encoder with dropout, and a head that is dropped after training.

    Raises:
        TrainingError: The encoder has no dropout, so that both views would be the same vector.
    """

    parts = ("online", "head")

    def __init__(self, online: Encoder, config: SimCSEConfig) -> None:
        super().__init__(online)
        if not online.drops:
            raise TrainingError(
                f"objective simcse: {online.config.model} has no dropout, expected some, which makes the two views; "
                "set encoder.dropout, such as 0.1"
            )
        self.temperature, self.dims = config.temperature, config.dims
        self.head = (
            nn.Sequential(nn.Linear(online.width, online.width), nn.Tanh()) if config.head == "mlp" else nn.Identity()
        )
        self.train()

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch, a scalar; its second views are not used."""
        twice_2BD = self.online.embed_rows(batch.tokens, np.concatenate([batch.view_1, batch.view_1]), batch_tokens)
        return nested(self.loss, self.dims, self.online.width, twice_2BD)

    def loss(self, twice_2BD: torch.Tensor) -> torch.Tensor:
        """That of both views' vectors, one under the other."""
        z1_BD, z2_BD = tied(self.head, twice_2BD, self.online.width).chunk(2)
        return dropout_contrast(z1_BD, z2_BD, self.temperature)


@full_precision
def dropout_contrast(z1_BD: torch.Tensor, z2_BD: torch.Tensor, temperature: float) -> torch.Tensor:
    """Cross-entropy of finding row i of z₂ from row i of z₁ by cosine, B choices: a scalar ≥ 0 (their equation 4)."""
    u_BD, v_BD = functional.normalize(z1_BD, dim=-1), functional.normalize(z2_BD, dim=-1)
    return functional.cross_entropy(u_BD @ v_BD.T / temperature, torch.arange(len(u_BD), device=u_BD.device))
