"""Objectives over annotated pairs: SBERT's softmax and cosine regression, and cross-encoders.

Shapes: B pairs, D width, F features of a pair, C classes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

from bsl.models.encoder.cross_encoder import CrossEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.anchored import AnchoredObjective
from bsl.models.objectives.objective import Objective, full_precision
from bsl.models.runtime.device import uploaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.objectives.objective import Batch, VectorLoss
    from bsl.models.objectives.supervised_config import (
        ClassifierSettings,
        CrossRegressionConfig,
        CrossSoftmaxConfig,
        Feature,
        RegressionConfig,
        SoftmaxConfig,
    )


class Softmax(Objective):
    """Cross-entropy of softmax(W · (u, v, |u − v|)); the classifier is dropped after training.

    Source: Reimers and Gurevych, EMNLP 2019 (SBERT), section 3, "Classification Objective Function".

    Example:
        >>> objective = Softmax(encoder, SoftmaxConfig(classes=3))
        >>> objective(batch).item() > 0  # (B, D) vectors of both sentences, (B,) labels → a scalar
        True
    """

    config: SoftmaxConfig

    def __init__(self, online: Encoder, config: SoftmaxConfig) -> None:
        super().__init__(online, config)
        self.classifier = PairClassifier(online.width, config)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch of pairs, a scalar."""
        labels_B = labels_of(batch, self.config.classes, self.online.device)
        u_BD, v_BD = self.online.embed_rows(batch.tokens, batch.rows).chunk(2)
        return cross_entropy(self.classifier(u_BD, v_BD), labels_B)


class Regression(AnchoredObjective):
    """Mean of (cos(h₁, h₂) − score)²: the cosine of two sentences predicts their gold similarity.

    Source: Reimers and Gurevych, EMNLP 2019 (SBERT), section 3, "Regression Objective Function". With `anchor_weight`,
    a second term keeps vectors close to those of the original encoder, also of pairs without a score (NaN).

    Example:
        >>> objective = Regression(encoder, RegressionConfig())
        >>> objective(batch).item() >= 0  # (B, D) vectors of both sentences, (B,) scores → a scalar
        True
    """

    config: RegressionConfig

    def __init__(self, online: Encoder, config: RegressionConfig) -> None:
        super().__init__(online, config)
        if config.each_text_once:
            self.reads_tokens = "encodes each text of a batch once"

    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return `stacked_vectors` and `loss`."""
        scores_B = uploaded(batch.columns["score"], self.online.device)
        vectors = self.stacked_vectors(batch, each_text_once=self.config.each_text_once)
        return vectors, partial(self.loss, scores_B=scores_B)

    def loss(self, h_2BD: torch.Tensor, t_2BD: torch.Tensor | None = None, *, scores_B: torch.Tensor) -> torch.Tensor:
        """Return the loss of both views' vectors h, anchored to t: a scalar ≥ 0."""
        if t_2BD is None:
            h1_BD, h2_BD = h_2BD.chunk(2)
            return squared_error(h1_BD, h2_BD, scores_B)
        return anchored_error(h_2BD, t_2BD, scores_B, self.config.anchor_weight)


@full_precision
def squared_error(h1_BD: torch.Tensor, h2_BD: torch.Tensor, scores_B: torch.Tensor) -> torch.Tensor:
    """Return the mean of (cos(h₁, h₂) − score)², a scalar ≥ 0."""
    return functional.mse_loss(functional.cosine_similarity(h1_BD, h2_BD), scores_B)


@full_precision
def anchored_error(
    h_2BD: torch.Tensor, t_2BD: torch.Tensor, scores_B: torch.Tensor, anchor_weight: float
) -> torch.Tensor:
    """Return the mean over pairs of (cos(h₁, h₂) − score)² + anchor_weight · (1 − cos(h, t)), a scalar ≥ 0.

    1 − cos(h, t) is the mean over the pair's two sentences; a pair without a score has no other error.
    """
    h1_BD, h2_BD = h_2BD.chunk(2)
    # A NaN would make the gradient NaN even where `torch.where` discards it.
    error_B = functional.cosine_similarity(h1_BD, h2_BD) - scores_B.nan_to_num()
    change_B = (1 - functional.cosine_similarity(h_2BD, t_2BD)).view(2, -1).mean(dim=0)
    return torch.where(scores_B.isnan(), change_B, error_B**2 + anchor_weight * change_B).mean()


class CrossObjective(Objective):
    """The encoder's transformer reads both sentences as one text; a new layer on [CLS] gives the values of the pair."""

    online: CrossEncoder

    def __init__(self, online: Encoder, config: CrossRegressionConfig | CrossSoftmaxConfig) -> None:
        super().__init__(CrossEncoder(online, getattr(config, "classes", 1)), config)  # a score is one value

    def on_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Check that the tokenizer starts and ends a text with special tokens, which enclose a joined pair.

        Raises:
            TrainingError: One of these tokens is missing.
        """
        marks = {tokenizer.cls_token_id, tokenizer.bos_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id}
        ids = tokenizer("a")["input_ids"]
        names = {number: name for name, number in tokenizer.get_vocab().items()}
        if len(ids) < 2 or not {ids[0], ids[-1]} <= marks:
            raise TrainingError(
                f"the tokenizer {type(tokenizer).__name__} reads 'a' as {[names[number] for number in ids]}, expected "
                "a special token before and after it, such as [CLS] and [SEP], to join two sentences. Start a "
                "cross-encoder from BERT, RoBERTa or a similar model."
            )

    def values(self, batch: Batch) -> torch.Tensor:
        """Return the values of each pair, (B, values)."""
        return self.online.values(batch.tokens, batch.view_1, batch.view_2)


class CrossRegression(CrossObjective):
    """−s · log σ(x) − (1 − s) · log(1 − σ(x)), or (σ(x) − s)²: a pair's value x predicts its gold similarity s.

    Source: Reimers and Gurevych, EMNLP 2019 (SBERT), sections 4.2 and 4.3 (BERT-STSb, BERT-AFS).

    Example:
        >>> objective = CrossRegression(encoder, CrossRegressionConfig())
        >>> objective(batch).item() > 0  # (B,) values, (B,) scores → a scalar
        True
    """

    config: CrossRegressionConfig

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch of pairs, a scalar."""
        values_B = self.values(batch)[:, 0]
        scores_B = uploaded(batch.columns["score"], values_B.device)
        return (binary_cross_entropy if self.config.loss == "bce" else sigmoid_error)(values_B, scores_B)


class CrossSoftmax(CrossObjective):
    """Cross-entropy of softmax(x): a pair's values x predict its class.

    Source: Devlin et al., NAACL 2019, section 4.1; SBERT section 4.2 trains BERT-NLI-STSb with it before STS-B.

    Example:
        >>> objective = CrossSoftmax(encoder, CrossSoftmaxConfig(classes=3))
        >>> objective(batch).item() > 0  # (B, C) values, (B,) labels → a scalar
        True
    """

    config: CrossSoftmaxConfig

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the loss of a batch of pairs, a scalar."""
        labels_B = labels_of(batch, self.config.classes, self.online.device)
        return cross_entropy(self.values(batch), labels_B)


binary_cross_entropy = full_precision(functional.binary_cross_entropy_with_logits)
"""Mean of −s · log σ(x) − (1 − s) · log(1 − σ(x)) of values x and scores s, a scalar ≥ 0."""


@full_precision
def sigmoid_error(values_B: torch.Tensor, scores_B: torch.Tensor) -> torch.Tensor:
    """Return the mean of (σ(x) − s)², a scalar ≥ 0."""
    return functional.mse_loss(torch.sigmoid(values_B), scores_B)


FEATURES: Final[Mapping[Feature, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "u": lambda u_BD, _: u_BD,
    "v": lambda _, v_BD: v_BD,
    "|u-v|": lambda u_BD, v_BD: (u_BD - v_BD).abs(),
    "u*v": lambda u_BD, v_BD: u_BD * v_BD,
}


class PairClassifier(nn.Module):
    """A linear classifier of concatenated features of two vectors (SBERT section 3, figure 1)."""

    def __init__(self, width: int, config: ClassifierSettings) -> None:
        super().__init__()
        self._features = config.features
        wide = len(config.features) * width
        if config.head == "linear":
            self.layers = nn.Sequential(nn.Linear(wide, config.classes))
        else:
            self.layers = nn.Sequential(nn.Linear(wide, wide // 2), nn.Linear(wide // 2, config.classes))

    def forward(self, u_BD: torch.Tensor, v_BD: torch.Tensor) -> torch.Tensor:
        """Return the logits (B, C) of pairs."""
        joined_BF = torch.cat([FEATURES[name](u_BD, v_BD) for name in self._features], dim=-1)
        logits_BC: torch.Tensor = self.layers(joined_BF)
        return logits_BC


def labels_of(batch: Batch, classes: int, device: torch.device) -> torch.Tensor:
    """Return the labels (B,) of a batch.

    Raises:
        TrainingError: A label is outside 0 to classes − 1.
    """
    labels_B = batch.columns["label"]
    lowest, highest = int(labels_B.min()), int(labels_B.max())
    if lowest < 0 or highest >= classes:
        raise TrainingError(
            f"a batch has labels from {lowest} to {highest}, expected 0 to {classes - 1}. Set "
            "training.objective.classes to the number of labels, or drop pairs without a label."
        )
    return uploaded(labels_B, device)


cross_entropy = full_precision(functional.cross_entropy)
"""Mean of −log softmax(logits)[label], a scalar ≥ 0."""
