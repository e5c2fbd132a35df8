"""Load an encoder from a local folder; finding it (Hub, mirror, package) is storage's work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import torch

from models.damage import damage_named
from models.encoder.appended import check_convolutions
from models.encoder.folding import first_of
from models.encoder.graph import load_graph
from models.encoder.modules import read_head
from models.encoder.network import Encoder
from models.encoder.pooling import POOLER
from models.encoder.saved import check_settings, read_saved, settled
from models.encoder.static import StaticTable, load_static
from models.encoder.tokens import prompt_tokens, set_prompt
from models.encoder.transformer import load_transformer, take_pooler
from models.encoder.word_embeddings import ByWeights, load_word_embeddings, read_word_weights
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from models.encoder.config import EncoderConfig
    from models.encoder.heads import TokenHead

# What gives token vectors, by its name in sentence-transformers.
BACKBONES: dict[str, Callable[[Path, EncoderConfig], tuple[PreTrainedModel, PreTrainedTokenizerBase]]] = {
    "Transformer": load_transformer,
    "StaticEmbedding": load_static,
    "WordEmbeddings": load_word_embeddings,
}


def load_encoder(folder: Path, config: EncoderConfig) -> tuple[Encoder, PreTrainedTokenizerBase]:
    """Load an encoder and its tokenizer from a local folder, in fp32 and evaluation mode.

    A folder without weights that has an ONNX graph, or a graph named by its path, gives an encoder that cannot learn.
    Where the configuration leaves length or prompt open, the encoder's own says what the folder has settled.

    Raises:
        EncoderError: The folder is not a model, is damaged, lacks weights (a pooler too, where that is read), has some
            that are no numbers, takes fewer tokens than `max_length`, has a prompt that is not pooled and leaves no
            room for text, or is a sentence-transformers model that pools otherwise, has other convolutions or has parts
            that are not computed here.
    """
    with damage_named(folder, EncoderError):
        encoder, tokenizer = _load(folder, config)
    broken = [name for name, weight in encoder.named_parameters() if not bool(torch.isfinite(weight).all())]
    if broken:
        raise EncoderError(
            f"{folder}: {len(broken)} weights are not finite (first: {broken[0]}), expected numbers; its training "
            "diverged or the copy is damaged: take an earlier checkpoint, or copy it again"
        )
    return encoder, tokenizer


def _load(folder: Path, config: EncoderConfig) -> tuple[Encoder, PreTrainedTokenizerBase]:
    saved = read_saved(folder)
    check_settings(saved, config)
    config = settled(saved, config)
    if saved.pooling is not None:
        config = config.model_copy(update={"pooling": saved.pooling})  # a saved pooler is among the heads
    load = BACKBONES[saved.backbone.kind] if saved.graph is None else partial(load_graph, saved.graph)
    backbone, tokenizer = load(saved.backbone.folder, config)
    set_prompt(tokenizer, config.prompt or "")
    token_heads = cast("list[TokenHead]", [read_head(head) for head in saved.token_heads])  # by their level
    sentence_heads = [read_head(head) for head in saved.sentence_heads]
    if saved.word_weights is not None and isinstance(backbone, StaticTable):
        backbone.weigh(read_word_weights(saved.word_weights))
        sentence_heads.insert(0, ByWeights())
    if config.pooling == POOLER:
        sentence_heads.insert(0, take_pooler(backbone, folder))
        config = config.model_copy(update={"pooling": "cls"})
    encoder = Encoder(backbone, config, token_heads, sentence_heads).eval()
    if saved.kept is not None and saved.kept < encoder.width:
        sentence_heads.append(first_of(encoder.width, saved.kept))
        encoder = Encoder(backbone, config, token_heads, sentence_heads).eval()
    check_convolutions(encoder)
    if config.prompt and not saved.pools_prompt:
        encoder.skipped = prompt_tokens(tokenizer)
        _check_room(folder, encoder)
    return encoder, tokenizer


def _check_room(folder: Path, encoder: Encoder) -> None:
    if encoder.skipped >= encoder.config.length:
        raise EncoderError(
            f"{folder}: its prompt takes {encoder.skipped} tokens, which are not pooled, of {encoder.config.length} "
            "that are kept, so nothing of a text would be; raise encoder.max_length, or give a shorter encoder.prompt"
        )
