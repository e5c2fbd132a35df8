"""Load an encoder from a local folder of transformers or sentence-transformers (see folder_settings.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.heads import dense_of
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.pooling import pooling_of
from bsl.models.encoder.serialization.folder_settings import completed, read_saved, resolved
from bsl.models.encoder.serialization.modules import read_head
from bsl.models.errors import EncoderError, load_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bsl.models.encoder.heads import Head, TokenHead
    from bsl.models.encoder.network import Backbone
    from bsl.models.encoder.serialization.folder_settings import SavedEncoder
    from bsl.models.encoder.static import Tokenizer


def load_network(folder: Path, config: EncoderConfig | None) -> tuple[Encoder, Tokenizer, Mapping[str, str]]:
    """Load a network, its tokenizer and its prompts, in fp32 and evaluation mode.

    The path of an ONNX graph, or a folder with a graph and no weights, gives an encoder that cannot be trained. The
    folder provides settings that the configuration does not set.

    Raises:
        EncoderError: The folder is not a model or is damaged. It lacks weights (also a pooler, if the pooling needs
            one) or has weights that are not finite. It has fewer embeddings than its tokenizer has ids, or accepts
            fewer tokens than `max_length`. A prompt that is not pooled leaves no room for text. The folder's
            convolutions differ from the configuration, or one of its modules or settings is not supported.
    """
    with load_errors(folder, EncoderError):
        saved = read_saved(folder)
        network, tokenizer = _load(folder, saved, config or EncoderConfig(model=folder.name))
    return network, tokenizer, saved.prompts


def _load(folder: Path, saved: SavedEncoder, config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    config = completed(saved, resolved(saved, config))
    averages = saved.word_weights is not None or saved.backbone.kind == "StaticEmbedding"
    if averages and config.pooling != "mean":
        raise EncoderError(
            f"{folder}: this table of vectors can only be averaged (found encoder.pooling={config.pooling}, expected "
            "mean). Unset encoder.pooling."
        )
    backbone, tokenizer, first_head = _backbone(saved, config)
    token_heads = cast("list[TokenHead]", [read_head(head) for head in saved.token_heads])
    saved_heads = saved.sentence_heads
    if saved.normalize and not config.normalize:
        saved_heads = saved_heads[:-1]
    sentence_heads = [*first_head, *(read_head(head) for head in saved_heads)]
    if pooling_of(config.pooling).uses_pooler:
        from bsl.models.encoder.transformer import take_pooler

        sentence_heads.insert(0, take_pooler(backbone, folder))
        config = config.model_copy(update={"pooling": "cls"})
    network = Encoder(backbone, config, token_heads, sentence_heads).eval()
    # By numpy: on busy cores, torch's threads wait for each other at each tensor, 400 times as long as they compute.
    broken = [name for name, weight in network.named_parameters() if not np.isfinite(weight.detach().numpy()).all()]
    if broken:
        raise EncoderError(
            f"{folder}: {len(broken)} weights are not finite (first: {broken[0]}): its training diverged, or the copy "
            "is damaged. Use an earlier checkpoint, or copy the folder again."
        )
    network.equal_lengths = _reads_padding(saved.backbone.folder, network, tokenizer)
    _check_width(saved, network)
    if saved.truncate_dim is not None and saved.truncate_dim < network.width:
        first = dense_of(torch.eye(saved.truncate_dim, network.width), torch.zeros(saved.truncate_dim))
        network = network.with_heads(config, token_heads, [*sentence_heads, first])
    if token_heads:
        from bsl.models.encoder.cnn import check_convolutions

        check_convolutions(network)
    network.pools_prompt, network.roles_not_loaded = saved.pools_prompt, saved.roles_not_loaded
    return network.with_prompt(config.prompt or "", tokenizer), tokenizer


def _reads_padding(folder: Path, network: Encoder, tokenizer: Tokenizer) -> bool:
    """Return whether padding changes the vectors of a folder's transformer; a graph is known by its architecture."""
    from transformers import PreTrainedModel

    from bsl.models.encoder.padding_test import READ_PADDING, reads_padding

    backbone = network.backbone
    if not isinstance(backbone, PreTrainedModel):
        return getattr(backbone.config, "model_type", None) in READ_PADDING
    if tokenizer.pad_token_id is None:
        return False  # encoding refuses the tokenizer
    try:
        left = getattr(tokenizer, "padding_side", "right") == "left"
        return reads_padding(backbone, int(tokenizer.pad_token_id), network.config.length, left=left)
    except EncoderError as error:
        raise EncoderError(f"{folder}: {error}") from error


def _check_width(saved: SavedEncoder, network: Encoder) -> None:
    """Check the stated width of token vectors, which decides whether `truncate_dim` truncates."""
    width = network.token_width
    accepted = [None, width, *([width - 1] if saved.word_weights else [])]  # a word's weight is one more dimension
    if saved.token_width not in accepted:
        raise EncoderError(
            f"{saved.backbone.folder}: the pooling's embedding_dimension is {saved.token_width!r}, but token vectors "
            f"have width {width}. Correct it in the config.json of the module Pooling."
        )


def _backbone(saved: SavedEncoder, config: EncoderConfig) -> tuple[Backbone, Tokenizer, list[Head]]:
    """Load the backbone, its tokenizer, and the head of a weighted word table; imports only the module it needs."""
    folder = saved.backbone.folder
    if saved.graph is not None:
        from bsl.models.encoder.onnx import load_graph

        return *load_graph(saved.graph, folder, config), []
    if saved.backbone.kind == "StaticEmbedding":
        from bsl.models.encoder.static import load_static

        return *load_static(folder, config), []
    if saved.backbone.kind == "WordEmbeddings":
        from bsl.models.encoder.serialization.word_embeddings import load_word_embeddings

        return load_word_embeddings(folder, saved.word_weights, config)
    from bsl.models.encoder.transformer import load_transformer

    return *load_transformer(folder, config), []
