"""A small masked language model that learns in minutes on a CPU.

ModernBERT architecture (arXiv 2412.13663: pre-norm, rotary positions, no dropout), with global attention in every
layer. A post-norm BERT of the same size stays on the plateau of unigram statistics for too long on a CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from transformers import ModernBertConfig, ModernBertForMaskedLM, PreTrainedTokenizerFast

from bsl.models.encoder.layouts import Tokens
from bsl.models.objectives.language_modeling.masked_lm import Masking
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence


def length_batches(
    lengths: np.ndarray, tokens: int, generator: np.random.Generator, window: int = 12_000
) -> list[np.ndarray]:
    """Cut examples into batches of at most `tokens` padded tokens.

    Args:
        lengths: (N,) tokens of each example.
        tokens: Largest number of padded tokens in a batch; a longer example is a batch by itself.
        generator: Draws the order of examples and of batches.
        window: Number of examples sorted together; smaller is more random, larger has less padding.

    Returns:
        Arrays of example numbers; together they contain each example once.
    """
    order = generator.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for start in range(0, len(order), window):
        part = order[start : start + window]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches.extend(_cut(part, lengths, tokens))
    return [batches[i] for i in generator.permutation(len(batches))]


def _cut(part: np.ndarray, lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    cuts: list[np.ndarray] = []
    first = 0
    for last in range(len(part)):
        if last > first and (last - first + 1) * lengths[part[last]] > tokens:
            cuts.append(part[first:last])
            first = last
    if first < len(part):
        cuts.append(part[first:])
    return cuts


class EncoderShape(Record):
    """Shape of the encoder and of its training batches."""

    layers: int = Field(default=4, ge=1)
    """Transformer layers."""
    width: int = Field(default=256, ge=8)
    """Hidden width d."""
    heads: int = Field(default=4, ge=1)
    """Attention heads."""
    feed_forward: int = Field(default=512, ge=8)
    """Inner width of the gated feed-forward block."""
    max_tokens: int = Field(default=64, ge=8)
    """Longest training sequence, [CLS] and [SEP] included; rotary positions allow longer ones later."""
    batch_tokens: int = Field(default=2048, ge=16)
    """Largest number of padded tokens in a batch."""
    masked: float = Field(default=0.3, gt=0, lt=1)
    """Share of tokens to predict (ModernBERT section 2.1)."""


def build_masked_lm(config: EncoderShape, tokenizer: PreTrainedTokenizerFast, seed: int) -> ModernBertForMaskedLM:
    """Return an encoder with its masked-LM head, initialised at random by `seed`."""
    torch.manual_seed(seed)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.width,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "max_position_embeddings": 512,
        "layer_types": ["full_attention"] * config.layers,
        "pad_token_id": tokenizer.pad_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    # Eager attention: on a CPU faster than the fused kernel for sequences this short.
    return ModernBertForMaskedLM(ModernBertConfig.from_dict(shape, attn_implementation="eager"))


class MaskedSentences:
    """Examples of one sentence per sequence, as in the encoder's later use."""

    def __init__(
        self, sentences: Sequence[np.ndarray], tokenizer: PreTrainedTokenizerFast, config: EncoderShape, seed: int
    ) -> None:
        """Store the token ids of sentences, [CLS] and [SEP] included."""
        self.sentences = sentences
        self.lengths = np.fromiter((len(s) for s in sentences), dtype=np.int64, count=len(sentences))
        self.config, self.seed = config, seed
        self.pad_id, self.masking = int(tokenizer.pad_token_id), Masking.of(tokenizer)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return batches of similar length, shuffled again each epoch."""
        generator = np.random.default_rng([self.seed, epoch])
        return length_batches(self.lengths, self.config.batch_tokens, generator, window=50_000)

    def loss(self, model: nn.Module, batch: np.ndarray, generator: np.random.Generator) -> tuple[Tensor, int]:
        """Return the cross-entropy of the masked tokens, and the number of all tokens read."""
        logits_NV, labels_N = self.masked_logits(model, batch, generator)
        return nn.functional.cross_entropy(logits_NV.float(), labels_N), int(self.lengths[batch].sum())

    def masked_logits(
        self,
        model: Any,  # noqa: ANN401 - a ModernBertForMaskedLM
        batch: np.ndarray,
        generator: np.random.Generator,
    ) -> tuple[Tensor, Tensor]:
        """Mask a batch; return the logits of the masked tokens only, which saves 70 % of the head's work.

        Returns:
            (N, vocabulary) logits and (N,) labels of the N masked tokens.
        """
        tokens_BT, real_BT = Tokens.of([self.sentences[i] for i in batch], self.pad_id).padded()
        masked = map(torch.from_numpy, self.masking.mask_tokens(tokens_BT.numpy(), self.config.masked, generator))
        device = next(model.parameters()).device
        tokens, real, hidden, chosen = (array.to(device) for array in (tokens_BT, real_BT.bool(), *masked))
        states = model.model(hidden, attention_mask=real).last_hidden_state
        return model.decoder(model.head(states[chosen])), tokens[chosen]


@torch.no_grad()
def evaluate_masked_lm(model: ModernBertForMaskedLM, sentences: MaskedSentences, seed: int) -> dict[str, float]:
    """Return loss (nats), perplexity and accuracy over masked tokens of held-out sentences, with fixed masks."""
    model.eval()  # type: ignore[no-untyped-call]
    total, right, count = 0.0, 0, 0
    for number, examples in enumerate(sentences.plan(0)):
        logits, labels = sentences.masked_logits(model, examples, np.random.default_rng([seed, number]))
        total += float(nn.functional.cross_entropy(logits.float(), labels, reduction="sum"))
        right += int((logits.argmax(-1) == labels).sum())
        count += len(labels)
    return {"loss": total / count, "perplexity": float(np.exp(total / count)), "accuracy": right / count}
