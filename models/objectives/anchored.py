"""Objectives that keep vectors or similarities close to those of the original encoder, a frozen copy.

Shapes: B pairs, D width.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch

from bsl.models.objectives.objective import VectorObjective

if TYPE_CHECKING:
    from typing import Self

    from bsl.models.encoder.network import Encoder
    from bsl.models.objectives.contrastive_config import ContrastiveConfig
    from bsl.models.objectives.objective import Batch
    from bsl.models.objectives.supervised_config import RegressionConfig


class AnchoredObjective(VectorObjective):
    """An objective with a term that penalises changes of the encoder, if its `anchor_weight` is above 0.

    Attributes:
        target: The original encoder, frozen and without dropout; None without an anchor.
    """

    config: ContrastiveConfig | RegressionConfig
    target: Encoder | None

    def __init__(self, online: Encoder, config: ContrastiveConfig | RegressionConfig) -> None:
        super().__init__(online, config)
        self.target = copy.deepcopy(online).requires_grad_(False) if config.anchor_weight > 0 else None
        self.train()

    def train(self, mode: bool = True) -> Self:
        """Set training mode; the original encoder has no dropout."""
        super().train(mode)
        if self.target is not None:
            self.target.eval()
        return self

    def stacked_vectors(self, batch: Batch) -> list[torch.Tensor]:
        """Return the vectors (2B, D) of both views, and with an anchor also those of the original encoder."""
        vectors = [self.online.embed_rows(batch.tokens, batch.rows)]
        if self.target is not None:
            with torch.no_grad():
                vectors.append(self.target.embed_rows(batch.tokens, batch.rows))
        return vectors
