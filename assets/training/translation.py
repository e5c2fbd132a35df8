"""Train a small MarianMT model (OPUS-MT's architecture, at a size for a CPU), and measure its quality.

Quality is measured against references, and after a round trip against the original sentences. BLEU and chrF are
sacreBLEU's with its default settings (13a tokenisation; chrF2), from 0 to 100.

Shapes: B examples, S source tokens, T target tokens, D width, V vocabulary, N target tokens without padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import sacrebleu
import torch
from pydantic import Field
from torch import Tensor, nn
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from assets.training.corpora import fingerprint
from assets.training.masked_lm import length_batches
from bsl.models.encoder.layouts import Tokens
from bsl.models.objectives.language_modeling.masked_lm import linear_cross_entropy
from bsl.models.translation.filters import loops
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import MarianTokenizer


LONGEST = 100  # tokens per side
RATIO = 4.0  # limit of the ratio of both lengths, with three tokens added to each


class TranslationModelConfig(Record):
    """Shape of the translator and of its training batches."""

    encoder_layers: int = Field(default=3, ge=1)
    """Encoder layers."""
    decoder_layers: int = Field(default=2, ge=1)
    """Decoder layers; fewer than the encoder's, because they run once per token."""
    width: int = Field(default=256, ge=8)
    """Model width D."""
    heads: int = Field(default=4, ge=1)
    """Attention heads."""
    feed_forward: int = Field(default=1024, ge=8)
    """Inner width of feed-forward blocks."""
    batch_tokens: int = Field(default=5000, ge=32)
    """Largest number of padded source and target tokens in a batch."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Probability mass spread over the vocabulary."""
    joined: float = Field(default=0.15, ge=0, lt=1)
    """Share of examples made of two pairs of one language, which are longer inputs than those of the corpus."""


def build_translator(config: TranslationModelConfig, tokenizer: MarianTokenizer, seed: int) -> MarianMTModel:
    """Return a MarianMTModel with the conventions of OPUS-MT, initialised at random by `seed`.

    The embedding of `<pad>`, which starts decoding, is always zero, because CTranslate2 starts Marian models from
    zeros.
    """
    torch.manual_seed(seed)
    size, pad_id = len(tokenizer.get_vocab()), tokenizer.pad_token_id
    end_id = tokenizer.eos_token_id
    conventions = {
        "vocab_size": size,
        "decoder_vocab_size": size,
        "max_position_embeddings": 512,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_ffn_dim": config.feed_forward,
        "decoder_ffn_dim": config.feed_forward,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "d_model": config.width,
        "dropout": 0.0,
        "activation_function": "swish",
        "init_std": config.width**-0.5,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "pad_token_id": pad_id,
        "decoder_start_token_id": pad_id,
        "bos_token_id": end_id,
        "eos_token_id": end_id,
        "forced_eos_token_id": end_id,
    }
    # Eager attention: on a CPU faster than the fused kernel for sequences this short.
    model = MarianMTModel(MarianConfig.from_dict(conventions, attn_implementation="eager"))
    _initialise(model)
    model.generation_config = GenerationConfig.from_dict(
        {
            "bad_words_ids": [[pad_id]],
            "decoder_start_token_id": pad_id,
            "bos_token_id": end_id,
            "eos_token_id": end_id,
            "forced_eos_token_id": end_id,
            "pad_token_id": pad_id,
            "max_length": 256,
            "num_beams": 4,
        }
    )
    return model


@torch.no_grad()
def _initialise(model: MarianMTModel) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear) and module is not model.lm_head:
            nn.init.xavier_uniform_(module.weight)
    model.model.shared.weight[model.config.pad_token_id].zero_()


@dataclass(frozen=True)
class EncodedPairs:
    """Token ids of one language direction, without special tokens."""

    sources: list[np.ndarray]
    targets: list[np.ndarray]
    prefix: int | None
    """Id of the target-language token that starts each source; None if the model has one target."""
    share: float
    """Share of the pairs drawn in each epoch; above 1, pairs repeat."""


def comparable(one: list[np.ndarray], other: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Drop pairs with a side of `LONGEST` tokens or more, or with one side `RATIO` times as long as the other."""
    pairs = [
        (a, b)
        for a, b in zip(one, other, strict=True)
        if max(len(a), len(b)) < LONGEST and 1 / RATIO < (len(a) + 3) / (len(b) + 3) < RATIO
    ]
    return [a for a, _ in pairs], [b for _, b in pairs]


class TranslationPairs:
    """Examples over several directions with one model."""

    def __init__(
        self, directions: list[EncodedPairs], tokenizer: MarianTokenizer, config: TranslationModelConfig, seed: int
    ) -> None:
        """Store the pairs of all directions."""
        self.directions, self.config, self.seed = directions, config, seed
        self.sources = [row for d in directions for row in d.sources]
        self.targets = [row for d in directions for row in d.targets]
        self.prefixes = np.concatenate(
            [np.full(len(d.sources), -1 if d.prefix is None else d.prefix) for d in directions]
        )
        self.lengths = np.array([len(s) + len(t) for s, t in zip(self.sources, self.targets, strict=True)])
        self.end_id, self.pad_id = int(tokenizer.eos_token_id), int(tokenizer.pad_token_id)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return batches of (examples, 2) pair numbers: a pair, and a second pair joined to it or −1."""
        generator = np.random.default_rng([self.seed, epoch])
        first = self._draw(generator)
        second = self._partners(first, generator)
        lengths = self.lengths[first] + np.where(second >= 0, self.lengths[second], 0) + 3
        examples = np.stack([first, second], axis=1)
        return [examples[batch] for batch in length_batches(lengths, self.config.batch_tokens, generator)]

    def _draw(self, generator: np.random.Generator) -> np.ndarray:
        chosen: list[np.ndarray] = []
        start = 0
        for direction in self.directions:
            count = len(direction.sources)
            repeats, rest = divmod(round(direction.share * count), count)
            chosen += [np.arange(start, start + count)] * repeats
            chosen.append(start + generator.permutation(count)[:rest])
            start += count
        return np.concatenate(chosen)

    def _partners(self, first: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return a random pair of the same direction for a share of the examples, −1 for the others."""
        ends = np.cumsum([len(d.sources) for d in self.directions])
        owner = np.searchsorted(ends, first, side="right")
        starts = ends - np.array([len(d.sources) for d in self.directions])
        partner = starts[owner] + (generator.random(len(first)) * (ends - starts)[owner]).astype(np.int64)
        return np.where(generator.random(len(first)) < self.config.joined, partner, -1)

    def loss(self, model: nn.Module, batch: np.ndarray, generator: np.random.Generator) -> tuple[Tensor, int]:  # noqa: ARG002
        """Return the label-smoothed cross-entropy per target token, and the number of target tokens."""
        sources = Tokens.of([self._source(*e) for e in batch], self.pad_id)
        targets = Tokens.of([self._target(*e) for e in batch], self.pad_id)
        translator: Any = model  # typed as the loop knows it; a MarianMTModel
        states_ND, labels_N = target_states(translator, sources, targets)
        candidates = translator.model.shared.weight[:-1]  # the last row is <pad>: not a candidate, and always zero
        return linear_cross_entropy(states_ND, candidates, labels_N, self.config.label_smoothing), len(labels_N)

    def _source(self, first: int, second: int) -> np.ndarray:
        prefix = [[self.prefixes[first]]] if self.prefixes[first] >= 0 else []
        rest = [self.sources[second]] if second >= 0 else []
        return np.concatenate([*prefix, self.sources[first], *rest, [self.end_id]])

    def _target(self, first: int, second: int) -> np.ndarray:
        rest = [self.targets[second]] if second >= 0 else []
        return np.concatenate([self.targets[first], *rest, [self.end_id]])


def target_states(model: MarianMTModel, sources: Tokens, targets: Tokens) -> tuple[Tensor, Tensor]:
    """Return the decoder's last hidden states for all target tokens.

    Returns:
        (N, D) states and (N,) labels of the N target tokens without padding.
    """
    device = next(model.parameters()).device
    ids_BS, mask_BS, labels_BT, real_BT = (x.to(device) for x in (*sources.padded(), *targets.padded()))
    previous_BT = torch.cat([torch.full_like(labels_BT[:, :1], targets.pad_id), labels_BT[:, :-1]], dim=1)
    outputs = model.model(input_ids=ids_BS, attention_mask=mask_BS, decoder_input_ids=previous_BT)
    return outputs.last_hidden_state[real_BT.bool()], labels_BT[real_BT.bool()]


MAX_REPEATS = 3


def translation_quality(translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Return corpus BLEU and chrF of translations with one reference each."""
    return {
        "bleu": round(sacrebleu.corpus_bleu(list(translations), [list(references)]).score, 2),
        "chrf": round(sacrebleu.corpus_chrf(list(translations), [list(references)]).score, 2),
    }


def round_trip_quality(originals: Sequence[str], returned: Sequence[str]) -> dict[str, float]:
    """Measure back-translations against the original sentences.

    Args:
        originals: Original sentences.
        returned: Their back-translations.

    Returns:
        `chrf` against the originals; `copies`, the share in [0, 1] that equal the original except for case, spaces and
        punctuation; `loops`, the number that repeat a phrase more than three times in a row.
    """
    same = sum(fingerprint(a) == fingerprint(b) for a, b in zip(originals, returned, strict=True))
    frame = pl.DataFrame({"text": list(returned)}, schema={"text": pl.String})
    return {
        "chrf": round(sacrebleu.corpus_chrf(list(returned), [list(originals)]).score, 2),
        "copies": round(same / max(1, len(originals)), 4),
        "loops": int(frame.select(loops(pl.col("text"), MAX_REPEATS).fill_null(False).sum()).item()),
    }
