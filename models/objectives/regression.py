"""Regression of the cosine: what SBERT (Reimers and Gurevych, 2019) is fine-tuned by on graded pairs.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from torch.nn import functional

from models.objectives.base import Objective
from models.objectives.nested import nested
from models.objectives.precision import full_precision
from models.transfer import uploaded

if TYPE_CHECKING:
    import torch

    from models.encoder.network import Encoder
    from models.objectives.batch import Batch
    from models.objectives.supervised_config import RegressionConfig


class Regression(Objective):
    """The encoder alone: the cosine of two sentences is to be the score that people gave them."""

    needs = frozenset({"scores"})

    def __init__(self, online: Encoder, config: RegressionConfig) -> None:
        super().__init__(online)
        self.dims = config.dims
        self.train()

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar."""
        rows = np.concatenate([batch.view_1, batch.view_2])
        h1_BD, h2_BD = self.online.embed_rows(batch.tokens, rows, batch_tokens).chunk(2)
        assert batch.scores is not None
        scores_B = uploaded(batch.scores, h1_BD.device)
        loss = partial(squared_error, scores_B=scores_B)
        return nested(loss, self.dims, self.online.width, h1_BD, h2_BD)


@full_precision
def squared_error(h1_BD: torch.Tensor, h2_BD: torch.Tensor, scores_B: torch.Tensor) -> torch.Tensor:
    """Mean of (cos(h₁, h₂) − score)², a scalar ≥ 0 (SBERT section 3, "Regression Objective Function")."""
    return functional.mse_loss(functional.cosine_similarity(h1_BD, h2_BD), scores_B)
