"""Objectives of a cross-encoder: a pair's score, or its class, from both sentences read as one text.

Shapes: B pairs, C classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from models.encoder.cross_encoder import CrossEncoder
from models.errors import TrainingError
from models.objectives.objective import Objective
from models.objectives.precision import full_precision
from models.objectives.supervised import cross_entropy, labels_of
from models.transfer import uploaded

if TYPE_CHECKING:
    from models.encoder.network import Encoder
    from models.encoder.tokenization import Tokenizer
    from models.objectives.config import CrossRegressionConfig, CrossSoftmaxConfig
    from models.objectives.objective import Batch


class CrossObjective(Objective):
    """The encoder's transformer as a cross-encoder, whose layer on [CLS] starts anew."""

    online: CrossEncoder

    def __init__(self, online: Encoder, values: int) -> None:
        super().__init__(CrossEncoder(online, values))
        self.train()

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Check that a text begins and ends with a token of its own, between which a pair is joined.

        Raises:
            TrainingError: It does not.
        """
        marks = {tokenizer.cls_token_id, tokenizer.bos_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id}
        ids = tokenizer("a")["input_ids"]
        names = {number: name for name, number in tokenizer.get_vocab().items()}
        if len(ids) < 2 or not {ids[0], ids[-1]} <= marks:
            raise TrainingError(
                f"the tokenizer {type(tokenizer).__name__} reads 'a' as {[names[number] for number in ids]}, "
                "expected a token of its own before and behind it, such as [CLS] and [SEP], between which two "
                "sentences are read as one; start a cross-encoder from BERT, RoBERTa or their kin"
            )

    def values(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """What each pair of a batch comes to, (B, values)."""
        return self.online.values(batch.tokens, batch.view_1, batch.view_2, batch_tokens)


class CrossRegression(CrossObjective):
    """A pair's value is to be the score that people gave it."""

    needs = frozenset({"scores"})

    def __init__(self, online: Encoder, config: CrossRegressionConfig) -> None:
        super().__init__(online, values=1)
        self._loss = config.loss

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar."""
        values_B = self.values(batch, batch_tokens)[:, 0]
        assert batch.scores is not None
        scores_B = uploaded(batch.scores, values_B.device)
        return (binary_cross_entropy if self._loss == "bce" else sigmoid_error)(values_B, scores_B)


class CrossSoftmax(CrossObjective):
    """A pair's values are to tell its class."""

    needs = frozenset({"labels"})

    def __init__(self, online: Encoder, config: CrossSoftmaxConfig) -> None:
        super().__init__(online, values=config.classes)
        self._classes = config.classes

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of pairs, a scalar."""
        labels_B = labels_of(batch, self._classes, self.online.device)
        return cross_entropy(self.values(batch, batch_tokens), labels_B)


@full_precision
def binary_cross_entropy(values_B: torch.Tensor, scores_B: torch.Tensor) -> torch.Tensor:
    """Mean of −s · log σ(x) − (1 − s) · log(1 − σ(x)), a scalar ≥ 0."""
    return functional.binary_cross_entropy_with_logits(values_B, scores_B)


@full_precision
def sigmoid_error(values_B: torch.Tensor, scores_B: torch.Tensor) -> torch.Tensor:
    """Mean of (σ(x) − s)², a scalar ≥ 0."""
    return functional.mse_loss(torch.sigmoid(values_B), scores_B)
