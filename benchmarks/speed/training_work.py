"""Encoders of real shapes with random weights, and pairs of real lengths, for bench_training.py."""

from __future__ import annotations

import numpy as np
import polars as pl
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.storage.assets.embedded import embedded_path

SHAPES = {"6x384": (6, 384, 12), "base": (12, 768, 12)}
PROFILES = {"nli": 64, "lognormal": 128}  # maximum length in tokens: as released; as in the first measurements
PAIRS = 4096


def sentences(profile: str) -> pl.DataFrame:
    """Return pairs: real NLI sentences and copies without a word, or words of one token with log-normal lengths."""
    random = np.random.default_rng(1)
    if profile == "nli":
        frame = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
        texts = pl.concat([frame["premise"], frame["hypothesis"]]).unique(maintain_order=True)
        first = texts.sample(PAIRS, seed=1, shuffle=True).to_list()
        second = [" ".join(np.delete(words := text.split(), random.integers(len(words)))) or text for text in first]
        return pl.DataFrame({"text_1": first, "text_2": second})
    vocabulary = AutoTokenizer.from_pretrained(embedded_path("bert-mini")).get_vocab()
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    lengths = np.clip(np.round(random.lognormal(np.log(14.2), 0.5, (PAIRS, 2))), 3, PROFILES[profile] - 2).astype(int)
    made = [[" ".join(random.choice(words, n)) for n in row] for row in lengths]
    return pl.DataFrame(made, schema=["text_1", "text_2"], orient="row")


def encoder_of(shape: str, profile: str, dropout: float = 0.1) -> Encoder:
    layers, width, heads = SHAPES[shape]
    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    backbone = BertModel(config, add_pooling_layer=False)
    return Encoder(backbone, EncoderConfig(model="random", max_length=PROFILES[profile]))
