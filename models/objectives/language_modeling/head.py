"""The head of a masked language model: from a token's last hidden state to the vocabulary, through the embeddings.

    state ─▶ linear ─▶ activation ─▶ LayerNorm ─▶ · input embeddings ᵀ + bias

That is the head of BERT, RoBERTa, ModernBERT and their kin alike; they differ in what its parts are called. Its output
weights are the encoder's input embeddings, so that the head itself is small.

Shapes: N tokens, D width, E width of the embeddings, V vocabulary.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn
from transformers import AutoModelForMaskedLM
from transformers.activations import ACT2FN

from models.encoder.architecture import read_settings
from models.encoder.transformer import quiet_transformers
from models.errors import TrainingError
from models.objectives.language_modeling.linear_cross_entropy import linear_cross_entropy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Parts:
    """Where transformers' masked language model of an architecture has its head.

    Attributes:
        linear: Path of the linear layer.
        norm: Path of its LayerNorm.
        activation: Field of the configuration that names what is between them; gelu, if None.
    """

    linear: str
    norm: str
    activation: str | None = None


_ROBERTA: Final = _Parts("lm_head.dense", "lm_head.layer_norm")
_PARTS: Final[Mapping[str, _Parts]] = {
    "bert": _Parts("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "hidden_act"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _ROBERTA,
    "distilbert": _Parts("vocab_transform", "vocab_layer_norm", "activation"),
    "modernbert": _Parts("head.dense", "head.norm", "classifier_activation"),
}
"""Architectures whose published head is taken over; others get a new one."""


class VocabularyHead(nn.Module):
    """Scores of the vocabulary for tokens' last hidden states, and their cross-entropy."""

    def __init__(self, linear: nn.Linear, norm: nn.LayerNorm, bias_V: torch.Tensor, activation: str = "gelu") -> None:
        super().__init__()
        self.linear, self.norm, self.activation = linear, norm, ACT2FN[activation]
        self.bias = nn.Parameter(bias_V.detach().clone())

    def forward(self, states_ND: torch.Tensor) -> torch.Tensor:
        """What is held against the embeddings, (N, E)."""
        transformed_NE: torch.Tensor = self.norm(self.activation(self.linear(states_ND)))
        return transformed_NE

    def loss(self, states_ND: torch.Tensor, embeddings_VE: torch.Tensor, labels_N: torch.Tensor) -> torch.Tensor:
        """Sum over N tokens of the cross-entropy of `labels` (nats), a scalar; the logits never exist in whole."""
        return len(labels_N) * linear_cross_entropy(self(states_ND), embeddings_VE, labels_N, bias_V=self.bias)


def embeddings_of(backbone: PreTrainedModel) -> torch.Tensor:
    """The input embeddings (V, E) that are the output weights too.

    Raises:
        TrainingError: The encoder is no transformer.
    """
    if getattr(backbone.config, "num_hidden_layers", 0) == 0:
        raise TrainingError(
            f"a {backbone.config.model_type} encoder has no layers above its token vectors, expected a transformer to "
            "guess words by; choose another encoder.model"
        )
    table: Any = backbone.get_input_embeddings()
    weight_VE: torch.Tensor = table.weight
    return weight_VE


def vocabulary_head(backbone: PreTrainedModel) -> VocabularyHead:
    """The head that lies beside the encoder's weights in the folder that they were loaded from, else a new one.

    A new one draws its weights from torch.
    """
    vocabulary, width = embeddings_of(backbone).shape  # refuses a table, which comes from no folder either
    saved = _saved_head(backbone)
    if saved is not None:
        return saved
    logger.info("%s: no masked-LM head beside the weights; a new one is learnt", backbone.name_or_path)
    linear = nn.Linear(int(backbone.config.hidden_size), width)
    nn.init.normal_(linear.weight, std=float(getattr(backbone.config, "initializer_range", 0.02)))
    nn.init.zeros_(linear.bias)
    eps = getattr(backbone.config, "layer_norm_eps", getattr(backbone.config, "norm_eps", 1e-5))
    return VocabularyHead(linear, nn.LayerNorm(width, eps=float(eps)), torch.zeros(vocabulary))


def _saved_head(backbone: PreTrainedModel) -> VocabularyHead | None:
    folder, parts = Path(backbone.name_or_path or ""), _PARTS.get(backbone.config.model_type)
    if parts is None or not (folder / "config.json").is_file():
        return None
    with quiet_transformers():
        whole: Any
        whole, info = AutoModelForMaskedLM.from_pretrained(
            str(folder),
            config=read_settings(folder),
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    bias_V = getattr(whole.get_output_embeddings(), "bias", None)
    lacks = [key for key in info["missing_keys"] if key.startswith((parts.linear, parts.norm))]
    if lacks or bias_V is None or len(embeddings_of(backbone)) != len(bias_V):
        return None
    linear, norm = whole.get_submodule(parts.linear), whole.get_submodule(parts.norm)
    activation = getattr(backbone.config, parts.activation) if parts.activation else "gelu"
    return VocabularyHead(linear, norm, bias_V, activation)
