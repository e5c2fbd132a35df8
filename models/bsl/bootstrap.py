"""The two-branch Siamese network of BSL (paper section 3.1, figure 1).

    view 1, view 2 ─▶ online encoder f_θ ─▶ predictor p_θ ─▶ z₁, z₂ ─┐
                                                                     ├─▶ loss (equations 1 and 2)
    view 1, view 2 ─▶ target encoder f_ξ ─▶ target norm ───▶ h₁, h₂ ─┘      no gradient below

Shapes: B pairs, D width.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from models.bsl.ema import ema_update
from models.bsl.loss import bootstrap_loss, contrastive_loss
from models.bsl.predictor import Predictor
from models.bsl.target_norm import TargetNorm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.bsl.config import BSLConfig
    from models.encoder.tokens import Tokens
    from models.encoder.transformer import Encoder


class Bootstrap(nn.Module):
    """Online encoder and predictor, which learn, and the target encoder, which follows.

    The target starts as a copy of the online encoder, requires no gradient, and is moved by `follow` only.
    """

    def __init__(self, online: Encoder, config: BSLConfig) -> None:
        super().__init__()
        self.config = config
        self.online = online
        self.target = copy.deepcopy(online).requires_grad_(False)
        self.predictor = Predictor(online.width, config)
        self.target_norm = TargetNorm(online.width, config)
        self.train()

    def train(self, mode: bool = True) -> Bootstrap:
        """As usual, but the target is in training mode only with `target_dropout`."""
        super().train(mode)
        self.target.train(mode and self.config.target_dropout)
        return self

    def learning_parameters(self) -> list[nn.Parameter]:
        """What the optimizer may change: online encoder and predictor."""
        return [*self.online.parameters(), *self.predictor.parameters()]

    def forward(
        self, tokens: Tokens, rows_1: NDArray[np.int64], rows_2: NDArray[np.int64], batch_tokens: int
    ) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar.

        Args:
            tokens: All sentences.
            rows_1: (B,) sentence numbers of view 1.
            rows_2: (B,) sentence numbers of view 2, pair by pair.
            batch_tokens: Padded tokens a forward pass of an encoder; changes rounding only.
        """
        rows = np.concatenate([rows_1, rows_2])
        h1_BD, h2_BD = self.online.embed_rows(tokens, rows, batch_tokens).chunk(2)
        with torch.no_grad():
            t1_BD, t2_BD = self.target_norm(self.target.embed_rows(tokens, rows, batch_tokens)).chunk(2)
        return self.loss(h1_BD, h2_BD, t1_BD, t2_BD)

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """The loss from the online encoder's vectors h and the target's vectors t of both views."""
        # Two calls: batch normalisation keeps its statistics per view, as published.
        loss = bootstrap_loss(self.predictor(h1_BD), self.predictor(h2_BD), t1_BD, t2_BD)
        if self.config.loss_scale == "released":
            loss = 4.0 + 4.0 * loss  # [2 − 2cos] + [2 − 2cos], not halved
        if self.config.contrastive_weight > 0:
            loss = loss + self.config.contrastive_weight * contrastive_loss(h1_BD, h2_BD, self.config.temperature)
        return loss

    def follow(self, momentum: float) -> None:
        """Move the target towards the online encoder (equation 4)."""
        ema_update(self.target, self.online, momentum)
