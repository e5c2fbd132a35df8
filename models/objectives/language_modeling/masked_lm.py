"""Masked language modelling, continued on a corpus (Devlin et al., 2019, section 3.1; Gururangan et al., 2020).

The loss does not use sentence vectors: it trains the transformer, whose states pooling turns into vectors. Each step
draws new masks from the run's numpy generator, which is saved in snapshots and in the same state in all processes.

The head maps a token's last hidden state to the vocabulary, through the embeddings:

    state ─▶ linear ─▶ activation ─▶ LayerNorm ─▶ · input embeddings ᵀ + bias

BERT, RoBERTa, ModernBERT and related models all have this head; only the names of its parts differ. Its output weights
are the encoder's input embeddings, so the head itself is small.

`linear_cross_entropy` computes projection and cross-entropy in slices of rows; the full logits are never in memory.

On a CPU, writing and reading (N, V) logits costs a third of a small translator's step; slices stay in cache. One pass
computes loss and gradients, as in Liger's fused loss (arXiv 2410.10989). `ELEMENTS` limits the logits' gradients in
memory: for a batch and a vocabulary of 250,000 they would fill gigabytes.

Shapes: B sentences, N tokens or rows, D width, E width of the embeddings, T tokens of the longest, V vocabulary or
classes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForMaskedLM
from transformers.activations import ACT2FN

from bsl.models.encoder.config import read_settings
from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.transformer import quiet_transformers
from bsl.models.errors import EncoderError
from bsl.models.objectives.objective import Objective
from bsl.models.runtime.device import gather_shares, own_share, uploaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer
    from bsl.models.objectives.language_modeling.config import MaskedLMConfig
    from bsl.models.objectives.objective import Batch

logger = logging.getLogger(__name__)

ROWS = 128  # per slice
ELEMENTS = 1 << 26  # of the logits' gradients in memory at once
# Shares of the chosen tokens: replaced by [MASK], by a random token (rarely a special one); the rest are unchanged.
MASKED, RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Masking:
    """Random masking of tokens, as in BERT.

    Attributes:
        mask_id: Id of [MASK].
        special: Ids of tokens that are never chosen, in ascending order.
        size: Size of the vocabulary.
    """

    mask_id: int
    special: NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Masking:
        """Return the masking for a tokenizer's vocabulary.

        Raises:
            EncoderError: The tokenizer has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise EncoderError(
                f"the tokenizer {type(tokenizer).__name__} has no mask token. Start from an encoder that was trained "
                "as a masked language model."
            )
        return cls(int(tokenizer.mask_token_id), np.array(sorted(tokenizer.all_special_ids)), len(tokenizer))

    def mask_tokens(
        self, ids: NDArray[np.integer], share: float, generator: np.random.Generator
    ) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
        """Choose tokens to predict and mask them: 80 % become [MASK], 10 % a random token, 10 % are unchanged.

        Args:
            ids: Token ids, of any shape.
            share: Share of the non-special tokens to choose; at least one token is chosen, if there is any.
            generator: Makes all random choices.

        Returns:
            The ids that the model sees, and True for each token to predict; both in the shape of `ids`.
        """
        eligible = ~np.isin(ids, self.special)
        chosen = eligible & (generator.random(ids.shape) < share)
        if not chosen.any():
            chosen.flat[np.flatnonzero(eligible)[:1]] = True
        draw = generator.random(ids.shape)
        hidden = np.where(chosen & (draw < MASKED), self.mask_id, ids)
        other = generator.integers(len(self.special), self.size, ids.shape)
        return np.where(chosen & (draw >= 1 - RANDOM), other, hidden), chosen


class MaskedLM(Objective):
    """Mean of −log p(token | rest) over hidden tokens; second views are not used.

    Source: Devlin et al., NAACL 2019, section 3.1; continued on a corpus as by Gururangan et al., ACL 2020.

    Example:
        >>> objective = MaskedLM(encoder, MaskedLMConfig(share=0.15))
        >>> objective.on_tokenizer(tokenizer)
        >>> objective(batch).item() > 0  # (N, D) states of hidden tokens → a scalar
        True
    """

    data_parallel = ("online", "head")
    config: MaskedLMConfig

    def __init__(self, online: Encoder, config: MaskedLMConfig) -> None:
        """Load the head saved with the encoder's weights, or make a new one.

        Raises:
            EncoderError: The encoder is not a transformer.
        """
        super().__init__(online, config)
        self.head = vocabulary_head(online.transformer)
        self._masking: Masking | None = None

    def on_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Set the mask token and the special tokens, which are never masked.

        Raises:
            EncoderError: The tokenizer has no mask token.
        """
        self._masking = Masking.of(tokenizer)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the mean cross-entropy (nats) of the hidden tokens of a batch's first views, a scalar."""
        shown, chosen_N, labels_N = self._hidden(batch)
        rows = own_share(np.arange(len(shown)))
        share = slice(shown.offsets[rows[0]], shown.offsets[rows[-1] + 1])
        x_BTD = self.online.last_layer(shown, rows)
        lengths = shown.lengths_of(rows)
        indices_N = np.flatnonzero(np.arange(x_BTD.shape[1]) < lengths[:, None])[chosen_N[share]]
        states_ND = x_BTD.flatten(0, 1).index_select(0, uploaded(indices_N, x_BTD.device))
        labels = uploaded(labels_N[share][chosen_N[share]].astype(np.int64), x_BTD.device)
        loss = self.head.loss(states_ND, embeddings_of(self.online.transformer), labels)
        return gather_shares(loss[None]).sum() / max(1, int(chosen_N.sum()))

    def _hidden(self, batch: Batch) -> tuple[Tokens, np.ndarray, np.ndarray]:
        """Return the masked first views, True for each token to predict (N,), and the original ids (N,)."""
        assert self._masking is not None  # set by `on_tokenizer`
        views = batch.tokens.take(batch.view_1)
        # A new generator per step, seeded by the run's: every step takes the same amount from the run's generator.
        step = np.random.default_rng(np.random.randint(0, 2**32, size=4, dtype=np.uint64))  # noqa: NPY002
        hidden, chosen_N = self._masking.mask_tokens(views.ids, self.config.share, step)
        return Tokens(hidden.astype(np.int32), views.offsets, views.pad_id), chosen_N, views.ids


class LinearCrossEntropy(torch.autograd.Function):
    """Mean label-smoothed cross-entropy of `states @ weightᵀ + bias`; the forward pass computes the gradients."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  torch's own signature
        states_ND: torch.Tensor,
        weight_VD: torch.Tensor,
        labels_N: torch.Tensor,
        smoothing: float,
        bias_V: torch.Tensor | None,
    ) -> torch.Tensor:
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
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401
        """Scale the gradients that the forward pass computed."""
        states_grad, weight_grad, *bias_grad = (gradients[0] * grad for grad in ctx.saved_tensors)
        return states_grad, weight_grad, None, None, bias_grad[0] if bias_grad else None


def linear_cross_entropy(
    states_ND: torch.Tensor,
    weight_VD: torch.Tensor,
    labels_N: torch.Tensor,
    smoothing: float = 0.0,
    bias_V: torch.Tensor | None = None,
) -> torch.Tensor:
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
    states_ND: torch.Tensor,
    weight_VD: torch.Tensor,
    labels_N1: torch.Tensor,
    smoothing: float,
    mean_D: torch.Tensor,
    bias_V: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
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
