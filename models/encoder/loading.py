"""Load an encoder from a local folder; finding it (Hub, mirror, package) is storage's work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.encoder.modules import read_head
from models.encoder.network import Encoder
from models.encoder.saved import check_settings, read_saved, settled
from models.encoder.static import load_static
from models.encoder.tokens import prompt_tokens, set_prompt
from models.encoder.transformer import load_transformer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from models.encoder.config import EncoderConfig

# What gives token vectors, by its name in sentence-transformers.
BACKBONES: dict[str, Callable[[Path, EncoderConfig], tuple[PreTrainedModel, PreTrainedTokenizerBase]]] = {
    "Transformer": load_transformer,
    "StaticEmbedding": load_static,
}


def load_encoder(folder: Path, config: EncoderConfig) -> tuple[Encoder, PreTrainedTokenizerBase]:
    """Load an encoder and its tokenizer from a local folder, in fp32 and evaluation mode.

    Where the configuration leaves length or prompt open, the encoder's own says what the folder has settled.

    Raises:
        EncoderError: The folder is not a model, lacks weights, takes fewer tokens than `max_length`, or is a
            sentence-transformers model that pools otherwise or has parts that are not computed here.
    """
    saved = read_saved(folder)
    check_settings(saved, config)
    config = settled(saved, config)
    backbone, tokenizer = BACKBONES[saved.backbone.kind](saved.backbone.folder, config)
    set_prompt(tokenizer, config.prompt or "")
    heads = [[read_head(head) for head in level] for level in (saved.token_heads, saved.sentence_heads)]
    encoder = Encoder(backbone, config, *heads).eval()
    if config.prompt and not saved.pools_prompt:
        encoder.skipped = prompt_tokens(tokenizer)
    return encoder, tokenizer
