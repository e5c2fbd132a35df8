"""A pretrained transformer and its tokenizer from a local folder.

A weight that the folder does not hold is an error, because a newly initialised layer scores like noise. The pooler head
that some architectures add is removed: only `cls-pooler` uses it, as a head of sentences.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import normalizers
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    MT5EncoderModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    T5EncoderModel,
    UMT5EncoderModel,
)
from transformers.utils import logging as hf_logging

from models.encoder.files import read_json
from models.encoder.heads import Dense
from models.encoder.pooling import POOLER
from models.encoder.tokenization import check_ids
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from transformers import PreTrainedConfig

    from models.encoder.config import EncoderConfig

# What transformers' architectures call the dropout inside their layers; heads' own are not here.
DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "dropout",
    "dropout_rate",
)
_MOST_UNUSED = 8  # positions that an architecture may keep for itself
# What transformers' architectures call a table with a row for each position; rotary and relative ones have none.
_TABLE = re.compile(r"(^|\.)(\w*position_embeddings?|embed_positions|positions_embed|wpe|pos_encoding)(\.|$)")
ENCODER_HALVES: dict[str, type[PreTrainedModel]] = {
    "t5": T5EncoderModel,
    "mt5": MT5EncoderModel,
    "umt5": UMT5EncoderModel,
}
"""Architectures of an encoder and a decoder, of which an encoder of sentences is the first half alone."""


def load_transformer(folder: Path, config: EncoderConfig) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a transformer in fp32 and its tokenizer.

    Raises:
        EncoderError: The folder is not a model, lacks weights, takes fewer tokens than `max_length`, or its
            architecture cannot have the dropout that is asked for; or its tokenizer has ids beyond its embeddings.
    """
    try:
        backbone, info = _read_backbone(folder, config)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except UnpicklingError as error:
        # torch's message goes on to say how to run what is in the file; that is not for us.
        raise EncoderError(
            f"{folder}: its pickled weights hold more than tensors and were not run; ask its authors for safetensors"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise EncoderError(
            f"{folder}: transformers cannot load it ({error}); check that the copy is complete"
        ) from error
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key or config.pooling == POOLER)
    if missing or info["mismatched_keys"]:
        raise EncoderError(
            f"{folder}: {len(missing)} weights are missing (first: {missing[:3]}) and "
            f"{len(info['mismatched_keys'])} have another shape, expected a complete encoder; "
            "newly initialised layers are refused: use a folder whose weights belong to its config.json"
        )
    table: Any = backbone.get_input_embeddings()
    check_ids(folder, tokenizer, len(table.weight))
    check_length(most_tokens(backbone), config, folder)
    settle_tokenizer(tokenizer, config)
    if config.pooling != POOLER:
        _drop_pooler(backbone)
    return backbone, tokenizer


def settle_tokenizer(tokenizer: PreTrainedTokenizerBase, config: EncoderConfig) -> None:
    """Give a tokenizer what batches of texts need, and the casing that is configured."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # any token pads, for padding is masked; decoders often have no other
    if config.lower_case:
        _lower_case(tokenizer)


def take_pooler(backbone: PreTrainedModel, folder: Path) -> Dense:
    """Remove a transformer's pooler and give it back as a head of sentences.

    Raises:
        EncoderError: It has none that is a dense layer and a tanh.
    """
    pooler = getattr(backbone, "pooler", None)
    dense, activation = (getattr(pooler, name, None) for name in ("dense", "activation"))
    if not isinstance(dense, nn.Linear) or not isinstance(activation, nn.Tanh):
        raise EncoderError(
            f"{folder}: a {backbone.config.model_type} without a pooler of a dense layer and a tanh, which "
            f"encoder.pooling={POOLER} reads; set encoder.pooling=cls"
        )
    _drop_pooler(backbone)
    with torch.device("meta"):  # draws no random numbers
        head = Dense(dense.in_features, dense.out_features)
    head.linear = dense
    return head


def _drop_pooler(backbone: PreTrainedModel) -> None:
    if getattr(backbone, "pooler", None) is not None:
        setattr(backbone, "pooler", None)  # noqa: B010  a module slot that mypy knows as a module only


def _read_backbone(folder: Path, config: EncoderConfig) -> tuple[PreTrainedModel, dict[str, Any]]:
    described = read_json(folder / "config.json")
    if "auto_map" in described and described.get("model_type") not in CONFIG_MAPPING:
        raise EncoderError(
            f"{folder}: a {described.get('model_type')} is code of its own ({', '.join(described['auto_map'])}), which "
            "is not run, expected an architecture of transformers; choose a model that needs no remote code"
        )
    with quiet_transformers():
        settings = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        settings.output_hidden_states = False  # asked for in each call, where pooling needs them
        if config.dropout is not None:
            _set_dropout(settings, config.dropout, folder)
        kind: Any = ENCODER_HALVES.get(settings.model_type, AutoModel)
        backbone, info = kind.from_pretrained(
            str(folder), config=settings, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    return backbone, info


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers from drawing a bar, and from warning of weights left out or missing: whoever loads looks."""
    verbosity, bar = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(logging.ERROR)
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hf_logging.set_verbosity(verbosity)
        if bar:
            hf_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _set_dropout(settings: PreTrainedConfig, rate: float, folder: Path) -> None:
    known = [name for name in DROPOUTS if hasattr(settings, name)]
    if not known:
        raise EncoderError(
            f"{folder}: a {settings.model_type} configuration has none of {', '.join(DROPOUTS)}; "
            "set its dropout in config.json and leave encoder.dropout unset"
        )
    for name in known:
        setattr(settings, name, rate)


def check_length(most: int | None, config: EncoderConfig, folder: Path) -> None:
    """Compare the longest input with what a transformer takes at most, None for any length.

    Raises:
        EncoderError: It is longer.
    """
    if most is not None and config.length > most:
        raise EncoderError(
            f"{folder}: the model takes {most} tokens, max_length asks for {config.length}; lower max_length"
        )


def most_tokens(backbone: PreTrainedModel) -> int | None:
    """The longest input that a transformer's table of positions has rows for; None without one: any length does.

    Rotary and relative architectures name `max_position_embeddings` too, but compute what lies beyond.
    """
    positions = getattr(backbone.config, "max_position_embeddings", None)
    weights = itertools.chain(backbone.named_parameters(), backbone.named_buffers())
    if not isinstance(positions, int) or not any(_TABLE.search(name) for name, _ in weights):
        return None
    # RoBERTa and its kin give the padding id a position, and tokens those behind it: of 514 they use 512.
    table = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return positions - (0 if padding is None else padding + 1)


def most_of_folder(folder: Path, wanted: int) -> int | None:
    """`most_tokens` of a folder's transformer; None also where a wanted length is surely shorter."""
    described = read_json(folder / "config.json")
    if described.get("model_type") not in CONFIG_MAPPING:
        return None  # what it is instead is said where it is loaded
    settings = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    positions = getattr(settings, "max_position_embeddings", None)
    if not isinstance(positions, int) or wanted <= positions - _MOST_UNUSED:
        return None
    with torch.device("meta"):  # its layers say what its configuration does not; no weight is made
        half = ENCODER_HALVES.get(settings.model_type)
        made: Any = AutoModel.from_config if half is None else half._from_config
        return most_tokens(made(settings))


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    core = tokenizer.backend_tokenizer
    own = json.loads(core.to_str())["normalizer"] or {}
    if "Lowercase" in {own.get("type"), *(step["type"] for step in own.get("normalizers", [])[:1])}:
        return  # by a load before this one
    steps = [normalizers.Lowercase(), *([core.normalizer] if core.normalizer is not None else [])]
    core.normalizer = normalizers.Sequence(steps)
