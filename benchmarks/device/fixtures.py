"""Test data for the bench: models of real shape with random weights, small trained models, embedded text."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import torch
from transformers import AutoTokenizer, BertConfig, BertModel, MarianConfig, MarianMTModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.translation.config import TranslatorConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

BASE: Final[Mapping[str, Any]] = {
    "num_hidden_layers": 12,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
OPUS: Final[Mapping[str, Any]] = {
    "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
    "static_position_embeddings": True,
}  # fmt: skip
LENGTH: Final = 64  # tokens, the limit for NLI in the released code
TOKEN: Final = ">>deu<<"
PIECES: Final = 58_101  # vocabulary size of opus-mt-en-de


@dataclass(frozen=True)
class Fixtures:
    """Texts, and local folders of models.

    Attributes:
        texts: unique sentences.
        encoder: a small encoder in the transformers format; all encoders use its tokenizer.
        translator: a small MarianMT model that requires `TOKEN`.
        scratch: an empty folder for files of the bench.
    """

    texts: list[str]
    encoder: Path
    translator: Path
    scratch: Path

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The small encoder's tokenizer."""
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            self.encoder, local_files_only=True, trust_remote_code=False
        )
        return tokenizer

    @property
    def pairs(self) -> pl.DataFrame:
        """Each text with the next one: training pairs with realistic lengths."""
        return pl.DataFrame({"text_1": self.texts, "text_2": [*self.texts[1:], self.texts[0]]})


def base_encoder(dropout: float = 0.1, **smaller: int) -> Encoder:
    """Return BERT-base with random weights, or a smaller model of its kind."""
    torch.manual_seed(0)
    shape = {**BASE, **smaller}
    config = BertConfig(**shape, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return Encoder(BertModel(config, add_pooling_layer=False), EncoderConfig(model="random", max_length=LENGTH))


def opus_shapes(small: Path, folder: Path, **smaller: int) -> Path:
    """Save a model of opus-mt-en-de's shape with random weights; its vocabulary is a small model's, padded.

    It never ends a sentence, so all engines decode up to the limit and do the same work.
    """
    shutil.copytree(small, folder, ignore=shutil.ignore_patterns("model.safetensors", "*.json"))
    pieces = [piece for piece in json.loads((small / "vocab.json").read_text()) if piece != "<pad>"]
    named = [*pieces, *(f"filler{number}" for number in range(PIECES - 1 - len(pieces))), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(named)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    torch.manual_seed(1)
    config = MarianConfig(
        **{**OPUS, **smaller}, vocab_size=PIECES, encoder_attention_heads=8, decoder_attention_heads=8,
        max_position_embeddings=512, pad_token_id=PIECES - 1, decoder_start_token_id=PIECES - 1, eos_token_id=0,
        forced_eos_token_id=None, scale_embedding=True, activation_function="swish",
    )  # fmt: skip
    model = MarianMTModel(config)
    model.final_logits_bias[0, 0] = -1e4
    model.save_pretrained(folder)
    return folder


def direction(beam: int = 1, **fields: object) -> TranslatorConfig:
    """Return the configuration for English to German by either model."""
    return TranslatorConfig.model_validate(
        {"model": "bench", "source_lang": "en", "target_lang": "de", "target_token": TOKEN, "beam": beam} | fields
    )
