"""Real but tiny encoders for tests: built from a config, written to a folder, loaded like any other."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import CONFIG_MAPPING, AutoModel, ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.static import StaticTable
from bsl.models.training.batches import tokenise_pairs
from bsl.storage.assets.embedded import embedded_path

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from bsl.models.objectives.objective import Batch

# Four SNLI-like sentences with a German and a French round trip.
ORIGINALS = [
    "A man is playing a guitar.",
    "Two dogs run across the snow.",
    "The children are eating lunch at a long table.",
    "A woman in a red coat waits for the bus.",
]
BACK_DE = [
    "A man plays the guitar.",
    "Two dogs are running through the snow.",
    "The children have lunch at a long table.",
    "A woman in a red coat is waiting for the bus.",
]
BACK_FR = [
    "One man plays guitar.",
    "Two dogs run in the snow.",
    "Children eat lunch at a long table.",
    "A woman wearing a red coat waits for the bus.",
]
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WIDTH = 32


def write_tiny(
    folder: Path, architecture: str = "bert", *, seed: int = 0, dropout: float = 0.1, layers: int = 2
) -> Path:
    """Write an encoder of width 32 with a word tokenizer, and return its folder."""
    words = sorted({w for text in ORIGINALS + BACK_DE + BACK_FR for w in _words(text)})
    vocabulary = {word: number for number, word in enumerate([*SPECIALS, *words])}
    torch.manual_seed(seed)
    _network(architecture, len(vocabulary), dropout, layers).save_pretrained(folder)
    _tokenizer(vocabulary).save_pretrained(folder)
    return folder


def tiny_encoder(
    folder: Path, architecture: str = "bert", *, pooling: str = "mean", **settings: Any
) -> tuple[Encoder, PreTrainedTokenizerBase]:
    """Write a tiny encoder with some settings of `write_tiny`, and load it."""
    write_tiny(folder, architecture, **settings)
    encoder = SentenceEncoder.load(folder, EncoderConfig(model=str(folder), pooling=pooling, max_length=24))
    return encoder.network, encoder.tokenizer


def write_shallow(folder: Path, asset: str = "bert-mini") -> Path:
    """Write the first of four layers of an embedded BERT, which reads any text and learns; return its folder."""
    whole = embedded_path(asset)
    model = AutoModel.from_pretrained(whole)
    model.layers = model.layers[:1]
    model.config.update({"num_hidden_layers": 1, "layer_types": model.config.layer_types[:1]})
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(whole / name, folder)
    return folder


def pairs_of(
    tokenizer: PreTrainedTokenizerBase, one: list[str] = BACK_DE, two: list[str] = BACK_FR, **known: Any
) -> Batch:
    """Return tokenised pairs of texts, with known columns."""
    pairs = tokenise_pairs(reader(tokenizer, 24), pl.DataFrame({"text_1": one, "text_2": two}))
    return replace(pairs, columns=known)


def random_tokens(lengths: list[int], seed: int = 0) -> Tokens:
    """Return sentences of these lengths out of 50 words, padded by token 1."""
    generator = np.random.default_rng(seed)
    return Tokens.of([generator.integers(4, 50, length) for length in lengths], 1)


def every_field() -> dict[str, Any]:
    """Return the columns of a batch of four pairs that objectives may need."""
    return {
        "score": np.array([1.0, 0.8, 0.0, 0.5], dtype=np.float32),
        "label": np.array([0, 1, 2, 0]),
        "group": np.array([1, 1, 1, 2], dtype=np.uint64),
        "teacher": np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32),
    }


def reader(tokenizer: PreTrainedTokenizerBase, max_length: int) -> SentenceEncoder:
    """Return an encoder with vectors of width 1, for tests of tokenisation."""
    table = StaticTable(torch.zeros(len(tokenizer), 1))
    return SentenceEncoder(Encoder(table, EncoderConfig(model="reader", max_length=max_length)), tokenizer)


def _words(text: str) -> list[str]:
    return [piece for piece, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text.lower())]


def _tokenizer(vocabulary: dict[str, int]) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def _network(architecture: str, vocabulary: int, dropout: float, layers: int) -> PreTrainedModel:
    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": WIDTH,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
    }
    if architecture != "modernbert":  # BERT-like architectures
        dropouts = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        config = CONFIG_MAPPING[architecture](**sizes, **dropouts, intermediate_size=64, pad_token_id=0)
        model: PreTrainedModel = AutoModel.from_config(config)
        return model
    return ModernBertModel(
        ModernBertConfig(
            **sizes,
            intermediate_size=48,
            global_attn_every_n_layers=1,
            pad_token_id=0,
            cls_token_id=2,
            sep_token_id=3,
            bos_token_id=2,
            eos_token_id=3,
        )
    )


def add_noise(encoder: Encoder) -> None:
    """Change all weights of a float64 encoder a little, as training does."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator, dtype=torch.float64), alpha=0.05)
