"""A small MarianMT model: the architecture of OPUS-MT checkpoints at a size that a CPU can train."""

from __future__ import annotations

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer


class TranslationModelConfig(BaseModel):
    """Shape of the translator and of its training batches."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    encoder_layers: int = Field(default=3, ge=1)
    """Encoder layers."""
    decoder_layers: int = Field(default=2, ge=1)
    """Decoder layers; fewer than the encoder's, since they run once per token."""
    width: int = Field(default=256, ge=8)
    """Model width D."""
    heads: int = Field(default=4, ge=1)
    """Attention heads."""
    feed_forward: int = Field(default=1024, ge=8)
    """Inner width of feed-forward blocks."""
    batch_tokens: int = Field(default=5000, ge=32)
    """Most padded source + target tokens of a batch."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Probability mass spread over the vocabulary."""
    joined: float = Field(default=0.15, ge=0, lt=1)
    """Share of examples that are two pairs of one language in a row: teaches longer inputs than the corpus has."""


def build_translator(config: TranslationModelConfig, tokenizer: MarianTokenizer, seed: int) -> MarianMTModel:
    """A randomly initialised MarianMTModel with the conventions of OPUS-MT, decided by `seed`.

    The embedding of `<pad>`, which starts decoding, is zero and stays so: CTranslate2 starts Marian models from zeros.
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
