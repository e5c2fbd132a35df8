"""The two-branch Siamese network of BSL (paper section 3.1, figure 1).

    view 1, view 2 ─▶ online encoder f_θ ─▶ predictor p_θ ─▶ z₁, z₂ ─┐
                                                                     ├─▶ loss (equations 1 and 2)
    view 1, view 2 ─▶ target encoder f_ξ ─▶ target norm ───▶ t₁, t₂ ─┘      no gradient below

Shapes: B pairs, D width.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from models.objectives.base import Objective
from models.objectives.ema import ema_update, momentum_at
from models.objectives.nested import nested
from models.objectives.predictor import Predictor
from models.objectives.target_norm import TargetNorm

if TYPE_CHECKING:
    from typing import Self

    from models.encoder.network import Encoder
    from models.objectives.batch import Batch
    from models.objectives.two_branch_config import TwoBranchConfig


class TwoBranch(Objective):
    """Online encoder and predictor, which learn, and the target encoder, which follows.

    The target starts as a copy of the online encoder, requires no gradient, and is moved by `update_target` only.
    Subclasses say what is minimised.
    """

    parts: ClassVar[tuple[str, ...]] = ("online", "target", "predictor", "target_norm")

    def __init__(self, online: Encoder, config: TwoBranchConfig) -> None:
        super().__init__(online)
        self._branches = config
        self.target = copy.deepcopy(online).requires_grad_(False)
        self.predictor = Predictor(online.width, config)
        self.target_norm = TargetNorm(online.width, config)
        self.train()

    def train(self, mode: bool = True) -> Self:
        """As usual, but the target is in training mode only with `target_dropout`."""
        super().train(mode)
        self.target.train(mode and self._branches.target_dropout)
        return self

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar."""
        rows = np.concatenate([batch.view_1, batch.view_2])
        h1_BD, h2_BD = self.online.embed_rows(batch.tokens, rows, batch_tokens).chunk(2)
        with torch.no_grad():
            t1_BD, t2_BD = self.target_norm(self.target.embed_rows(batch.tokens, rows, batch_tokens)).chunk(2)
        return nested(self.loss, self._branches.dims, self.online.width, h1_BD, h2_BD, t1_BD, t2_BD)

    @abstractmethod
    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """The loss from the online encoder's vectors h and the target's vectors t of both views, a scalar.

        With `dims` it is taken of the first dimensions of all four too. The predictor is to be called once per view:
        batch normalisation keeps its statistics per view, as published.
        """

    def momentum(self, step: int, total: int) -> float:
        """δ after optimizer step `step` (1-based) of `total`."""
        return momentum_at(step, total, self._branches)

    def update_target(self, momentum: float) -> None:
        """Move the target towards the online encoder (equation 4)."""
        ema_update(self.target, self.online, momentum)
