"""Objectives that keep vectors or similarities close to those of the original encoder, a frozen copy.

Shapes: B pairs, D width.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch

from bsl.models.objectives.objective import VectorObjective
from bsl.models.runtime.device import processes, uploaded

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

    def stacked_vectors(self, batch: Batch, *, each_text_once: bool = False) -> list[torch.Tensor]:
        """Return the vectors (2B, D) of both views, and with an anchor also those of the original encoder."""
        vectors = [_embedded(self.online, batch, each_text_once=each_text_once)]
        if self.target is not None:
            with torch.no_grad():
                vectors.append(_embedded(self.target, batch, each_text_once=each_text_once))
        return vectors


def _embedded(encoder: Encoder, batch: Batch, *, each_text_once: bool) -> torch.Tensor:
    """Return the vectors (2B, D) of both views; equal texts may run once, with one dropout mask."""
    if not each_text_once:
        return encoder.embed_rows(batch.tokens, batch.rows)
    first, inverse = batch.tokens.distinct(batch.rows)
    spare = np.repeat(first[:1], -len(first) % processes())  # equal shares for all processes
    vectors_XD = encoder.embed_rows(batch.tokens, np.append(first, spare))
    return vectors_XD.index_select(0, uploaded(inverse, encoder.device))
