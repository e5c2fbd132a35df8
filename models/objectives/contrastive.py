"""The contrastive objective that the paper compares with (§4.4, Table 7), after SimCLR (Chen et al., 2020).

With an anchor, a frozen copy of the encoder as it was before training is the target: the softmax of its cosines among
the batch's vectors is what the encoder's own must keep to (without a queue, as `distil` from a teacher).

Shapes: B pairs, D width.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from models.objectives.base import Objective
from models.objectives.distil import similarity_divergence
from models.objectives.nested import nested
from models.objectives.precision import full_precision

if TYPE_CHECKING:
    from typing import Self

    from models.encoder.network import Encoder
    from models.objectives.batch import Batch
    from models.objectives.contrastive_config import ContrastiveConfig


class Contrastive(Objective):
    """The encoder alone: the two views of a sentence attract, all other sentences of the batch repel."""

    parts = ("online", "target")

    def __init__(self, online: Encoder, config: ContrastiveConfig) -> None:
        super().__init__(online)
        self.config = config
        anchored = config.anchor_weight > 0
        self.target: nn.Module = copy.deepcopy(online).requires_grad_(False) if anchored else nn.Identity()
        self.train()

    def train(self, mode: bool = True) -> Self:
        """As usual, but the anchor drops nothing."""
        super().train(mode)
        self.target.eval()
        return self

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar."""
        rows = np.concatenate([batch.view_1, batch.view_2])
        vectors = [self.online.embed_rows(batch.tokens, rows, batch_tokens)]
        if self.config.anchor_weight > 0:
            with torch.no_grad():
                vectors.append(cast("Encoder", self.target).embed_rows(batch.tokens, rows, batch_tokens))
        return nested(self.loss, self.config.dims, self.online.width, *vectors)

    def loss(self, h_2BD: torch.Tensor, t_2BD: torch.Tensor | None = None) -> torch.Tensor:
        """Of both views' vectors, one under the other, and what the anchor makes of the same, a scalar ≥ 0."""
        temperature = self.config.temperature
        h1_BD, h2_BD = h_2BD.chunk(2)
        loss = nt_xent(h1_BD, h2_BD, temperature)
        if t_2BD is None:
            return loss
        held = [
            similarity_divergence(h_BD, t_BD, t_BD[:0], temperature, temperature)
            for h_BD, t_BD in zip((h1_BD, h2_BD), t_2BD.chunk(2), strict=True)
        ]
        return loss + self.config.anchor_weight * torch.stack(held).mean()


@full_precision
def nt_xent(h1_BD: torch.Tensor, h2_BD: torch.Tensor, temperature: float) -> torch.Tensor:
    """Cross-entropy of finding each of the 2B vectors' partner among the 2B − 1 others by cosine: a scalar ≥ 0.

    The other 2(B − 1) vectors are the negatives (paper §4.4; equation 1 of Chen et al., 2020).
    """
    rows = len(h1_BD)
    u_2BD = functional.normalize(torch.cat([h1_BD, h2_BD]), dim=-1)
    logits = u_2BD @ u_2BD.T / temperature
    logits = logits.masked_fill(torch.eye(2 * rows, dtype=torch.bool, device=logits.device), float("-inf"))
    partner = torch.arange(2 * rows, device=logits.device).roll(rows)
    return functional.cross_entropy(logits, partner)


@full_precision
def contrastive_loss(h1_BD: torch.Tensor, h2_BD: torch.Tensor, temperature: float) -> torch.Tensor:
    """InfoNCE over the batch, both directions averaged: a scalar ≥ 0.

    Row i of one view should find row i of the other among the whole batch by cosine similarity.
    """
    u_BD, v_BD = functional.normalize(h1_BD, dim=-1), functional.normalize(h2_BD, dim=-1)
    logits_BB = u_BD @ v_BD.T / temperature
    own = torch.arange(len(logits_BB), device=logits_BB.device)
    return 0.5 * (functional.cross_entropy(logits_BB, own) + functional.cross_entropy(logits_BB.T, own))
