"""The head of a masked language model: from a token's last hidden state to the vocabulary, through the embeddings.

    state ─▶ linear ─▶ activation ─▶ LayerNorm ─▶ · input embeddings ᵀ + bias

BERT, RoBERTa, ModernBERT and related models all have this head; only the names of its parts differ. Its output weights
are the encoder's input embeddings, so the head itself is small.

`linear_cross_entropy` computes projection and cross-entropy in slices of rows; the full logits are never in memory.

On a CPU, writing and reading (N, V) logits costs a third of a small translator's step; slices stay in cache. One pass
computes loss and gradients, as in Liger's fused loss (arXiv 2410.10989). `ELEMENTS` limits the logits' gradients in
memory: for a batch and a vocabulary of 250,000 they would fill gigabytes.

Shapes: N tokens or rows, D width, E width of the embeddings, V vocabulary or classes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM
from transformers.activations import ACT2FN

from models.encoder.config import read_settings
from models.encoder.transformer import quiet_transformers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedModel


ROWS = 128  # per slice
ELEMENTS = 1 << 26  # of the logits' gradients in memory at once


class LinearCrossEntropy(torch.autograd.Function):
    """Mean label-smoothed cross-entropy of `states @ weightᵀ + bias`; the forward pass computes the gradients."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  torch's own signature
        states_ND: Tensor,
        weight_VD: Tensor,
        labels_N: Tensor,
        smoothing: float,
        bias_V: Tensor | None,
    ) -> Tensor:
        """See `linear_cross_entropy`."""
        bf16 = torch.is_autocast_enabled(states_ND.device.type)
        kind = torch.get_autocast_dtype(states_ND.device.type) if bf16 else weight_VD.dtype
        wide = torch.promote_types(kind, torch.float32)
        states, weight = states_ND.to(kind), weight_VD.to(kind)
        count, share, scale = len(states), smoothing / len(weight), 1.0 / max(1, len(states))
        mean_D = weight.to(wide).mean(0).to(kind)
        losses, states_grad = torch.empty(count, dtype=wide, device=states.device), torch.empty_like(states)
        weight_grad = torch.zeros_like(weight, dtype=wide)
        bias_grad = None if bias_V is None else torch.zeros_like(bias_V, dtype=wide)
        block = max(ROWS, ELEMENTS // len(weight) // ROWS * ROWS)
        slopes = states.new_empty(min(count, block), len(weight))
        for first in range(0, count, block):
            end = min(first + block, count)
            for start in range(first, end, ROWS):
                rows, in_block = (
                    slice(start, min(start + ROWS, end)),
                    slice(start - first, min(start + ROWS, end) - first),
                )
                losses[rows], found = _slice(states[rows], weight, labels_N[rows, None], smoothing, mean_D, bias_V)
                slopes[in_block] = found
                states_grad[rows] = slopes[in_block] @ weight
                if bias_grad is not None:
                    bias_grad += found.sum(0)
            part = (slopes[: end - first].T @ states[first:end]).to(wide)
            weight_grad = part if first == 0 else weight_grad.add_(part)
        # The smoothing term is the same −share for every class, so it needs no separate (N, V) matrix.
        weight_grad -= share * states.to(wide).sum(0)
        saved = [
            (scale * (states_grad.to(wide) - smoothing * mean_D.to(wide))).to(states_ND.dtype),
            (scale * weight_grad).to(weight_VD.dtype),
        ]
        if bias_V is not None and bias_grad is not None:
            saved.append((scale * (bias_grad - share * count)).to(bias_V.dtype))
        ctx.save_for_backward(*saved)
        return losses.mean() if count else losses.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Scale the gradients that the forward pass computed."""
        states_grad, weight_grad, *bias_grad = (gradients[0] * grad for grad in ctx.saved_tensors)
        return states_grad, weight_grad, None, None, bias_grad[0] if bias_grad else None


def linear_cross_entropy(
    states_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float = 0.0, bias_V: Tensor | None = None
) -> Tensor:
    """Return the mean over N of the label-smoothed cross-entropy of `softmax(states @ weightᵀ + bias)`.

    Args:
        states_ND: (N, D) last hidden states.
        weight_VD: (V, D) output embedding.
        labels_N: (N,) right classes, each in [0, V).
        smoothing: Probability mass spread evenly over all V classes.
        bias_V: (V,) added to the logits.

    Returns:
        A scalar; equal to `torch.nn.functional.cross_entropy` of the logits, and 0 without rows.
    """
    return LinearCrossEntropy.apply(states_ND, weight_VD, labels_N, smoothing, bias_V)  # type: ignore[no-any-return, no-untyped-call]


def _slice(
    states_ND: Tensor, weight_VD: Tensor, labels_N1: Tensor, smoothing: float, mean_D: Tensor, bias_V: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the losses (N,) of a slice of rows, and the gradients (N, V) of its logits without the smoothing term."""
    wide = torch.promote_types(states_ND.dtype, torch.float32)
    scores_NV, mean_N1 = (states_ND @ weight_VD.T).to(wide), (states_ND @ mean_D).to(wide)[:, None]
    if bias_V is not None:
        scores_NV, mean_N1 = scores_NV + bias_V, mean_N1 + bias_V.to(wide).mean()
    right_N1 = scores_NV.gather(1, labels_N1)
    probabilities_NV = torch.softmax(scores_NV, 1)
    surprise_N1 = -probabilities_NV.gather(1, labels_N1).clamp_min(1e-37).log()
    losses_N = (surprise_N1 + smoothing * (right_N1 - mean_N1))[:, 0]
    return losses_N, probabilities_NV.scatter_add_(1, labels_N1, torch.full_like(right_N1, smoothing - 1))


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Parts:
    """Module paths of the head in transformers' masked language model of an architecture.

    Attributes:
        linear: Path of the linear layer.
        norm: Path of the LayerNorm.
        activation: Configuration field with the name of the activation between them; None for gelu.
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
"""Architectures whose published head is loaded; others get a new head."""


class VocabularyHead(nn.Module):
    """Masked-LM head: score the vocabulary from tokens' last hidden states, with the cross-entropy of the scores."""

    def __init__(self, linear: nn.Linear, norm: nn.LayerNorm, bias_V: torch.Tensor, activation: str = "gelu") -> None:
        super().__init__()
        self.linear, self.norm, self.activation = linear, norm, ACT2FN[activation]
        self.bias = nn.Parameter(bias_V.detach().clone())

    def forward(self, states_ND: torch.Tensor) -> torch.Tensor:
        """Return the transformed states (N, E), to be multiplied by the embeddings."""
        transformed_NE: torch.Tensor = self.norm(self.activation(self.linear(states_ND)))
        return transformed_NE

    def loss(self, states_ND: torch.Tensor, embeddings_VE: torch.Tensor, labels_N: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of `labels` (nats), summed over N tokens, without the full logits in memory."""
        return len(labels_N) * linear_cross_entropy(self(states_ND), embeddings_VE, labels_N, bias_V=self.bias)


def embeddings_of(backbone: PreTrainedModel) -> torch.Tensor:
    """Return the input embeddings (V, E), which are also the output weights."""
    table: Any = backbone.get_input_embeddings()
    weight_VE: torch.Tensor = table.weight
    return weight_VE


def vocabulary_head(backbone: PreTrainedModel) -> VocabularyHead:
    """Return the head saved in the folder of the encoder's weights, or a new head drawn from torch's generator."""
    vocabulary, width = embeddings_of(backbone).shape
    saved = _saved_head(backbone)
    if saved is not None:
        return saved
    logger.info("%s: no masked-LM head in the folder, training a new one", backbone.name_or_path)
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
        masked_lm: Any
        masked_lm, info = AutoModelForMaskedLM.from_pretrained(
            str(folder),
            config=read_settings(folder),
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    bias_V = getattr(masked_lm.get_output_embeddings(), "bias", None)
    missing = [key for key in info["missing_keys"] if key.startswith((parts.linear, parts.norm))]
    if missing or bias_V is None or len(embeddings_of(backbone)) != len(bias_V):
        return None
    linear, norm = masked_lm.get_submodule(parts.linear), masked_lm.get_submodule(parts.norm)
    activation = getattr(backbone.config, parts.activation) if parts.activation else "gelu"
    return VocabularyHead(linear, norm, bias_V, activation)
