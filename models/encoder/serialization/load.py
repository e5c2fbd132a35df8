"""Load an encoder from a local folder; finding it (Hub, mirror, package) is storage's work."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch

from models.encoder.cnn import check_convolutions
from models.encoder.config import EncoderConfig
from models.encoder.heads import first_of
from models.encoder.network import Encoder
from models.encoder.pooling import POOLER
from models.encoder.serialization.modules import read_head
from models.encoder.serialization.settings import check_settings, configured, read_saved, settled
from models.encoder.tokenization import surrounding_ids
from models.errors import EncoderError, load_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from models.encoder.heads import Head, TokenHead
    from models.encoder.network import Backbone
    from models.encoder.serialization.settings import SavedEncoder
    from models.encoder.tokenization import Tokenizer


def load_network(folder: Path, config: EncoderConfig | None) -> tuple[Encoder, Tokenizer, Mapping[str, str]]:
    """Load a network, its tokenizer and its prompts, in fp32 and evaluation mode.

    A folder without weights that has an ONNX graph, or the path of a graph, gives an encoder that cannot learn. Where
    the configuration leaves maximal length or prompt open, the network's own has those of the folder.

    Raises:
        EncoderError: The folder is not a model, is damaged, lacks weights (a pooler too, where that is read), has some
            that are no numbers or fewer embeddings than its tokenizer has ids, takes fewer tokens than `max_length`,
            has a prompt that is not pooled and leaves no room for text, or is a sentence-transformers model that pools
            otherwise, has other convolutions or has modules that are not computed here.
    """
    with load_errors(folder, EncoderError):
        saved = read_saved(folder)
        config = config or configured(saved, folder.name) or EncoderConfig(model=folder.name)
        network, tokenizer = _load(folder, saved, config)
    broken = [name for name, weight in network.named_parameters() if not bool(torch.isfinite(weight).all())]
    if broken:
        raise EncoderError(
            f"{folder}: {len(broken)} weights are not finite (first: {broken[0]}), expected numbers; its training "
            "diverged or the copy is damaged: take an earlier checkpoint, or copy it again"
        )
    return network, tokenizer, saved.prompts


def _load(folder: Path, saved: SavedEncoder, config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    check_settings(saved, config)
    config = settled(saved, config)
    if saved.pooling is not None:
        config = config.model_copy(update={"pooling": saved.pooling})  # a saved pooler is among the heads
    backbone, tokenizer, first_head = _backbone(saved, config)
    token_heads = cast("list[TokenHead]", [read_head(head) for head in saved.token_heads])  # by their level
    sentence_heads = [*first_head, *(read_head(head) for head in saved.sentence_heads)]
    network = Encoder(backbone, config, token_heads, sentence_heads).eval()
    if config.pooling == POOLER:
        from models.encoder.transformer import take_pooler

        sentence_heads.insert(0, take_pooler(network.transformer, folder))
        config = config.model_copy(update={"pooling": "cls"})
        network = Encoder(backbone, config, token_heads, sentence_heads).eval()
    if saved.kept is not None and saved.kept < network.width:
        sentence_heads.append(first_of(network.width, saved.kept))
        network = Encoder(backbone, config, token_heads, sentence_heads).eval()
    check_convolutions(network)
    if config.prompt and not saved.pools_prompt:
        network.skipped = len(surrounding_ids(tokenizer, config.prompt)[0])
        _check_room(folder, network)
    return network, tokenizer


def _backbone(saved: SavedEncoder, config: EncoderConfig) -> tuple[Backbone, Tokenizer, list[Head]]:
    """The backbone, its tokenizer, and the head of a weighted word table; only the module of its kind is imported."""
    folder = saved.backbone.folder
    if saved.graph is not None:
        from models.encoder.onnx import load_graph

        return *load_graph(saved.graph, folder, config), []
    if saved.backbone.kind == "StaticEmbedding":
        from models.encoder.static import load_static

        return *load_static(folder, config), []
    if saved.backbone.kind == "WordEmbeddings":
        from models.encoder.serialization.word_embeddings import load_word_embeddings

        return load_word_embeddings(folder, saved.word_weights, config)
    from models.encoder.transformer import load_transformer

    return *load_transformer(folder, config), []


def _check_room(folder: Path, network: Encoder) -> None:
    if network.skipped >= network.config.length:
        raise EncoderError(
            f"{folder}: its prompt takes {network.skipped} tokens, which are not pooled, of {network.config.length} "
            "that are kept, so nothing of a text would be; raise encoder.max_length, or give a shorter encoder.prompt"
        )
