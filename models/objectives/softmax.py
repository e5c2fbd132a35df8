"""Classification of pairs by their vectors: what SBERT (Reimers and Gurevych, 2019) is trained by on NLI.

Shapes: B pairs, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models.objectives.base import Objective
from models.objectives.classifier import PairClassifier, cross_entropy, labels_of

if TYPE_CHECKING:
    import torch

    from models.encoder.network import Encoder
    from models.objectives.batch import Batch
    from models.objectives.supervised_config import SoftmaxConfig


class Softmax(Objective):
    """Encoder and classifier; the classifier is dropped after training."""

    parts = ("online", "classifier")
    needs = frozenset({"labels"})

    def __init__(self, online: Encoder, config: SoftmaxConfig) -> None:
        super().__init__(online)
        self._classes = config.classes
        self.classifier = PairClassifier(online.width, config)
        self.train()

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar."""
        labels_B = labels_of(batch, self._classes, self.online.device)
        rows = np.concatenate([batch.view_1, batch.view_2])
        u_BD, v_BD = self.online.embed_rows(batch.tokens, rows, batch_tokens).chunk(2)
        return cross_entropy(self.classifier(u_BD, v_BD), labels_B)
