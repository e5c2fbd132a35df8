"""Load a pretrained transformer and its tokenizer from a local folder; read and write weights of modules' folders.

A missing weight is an error, since a newly initialised layer would make scores meaningless. The pooler that some
architectures have is removed: only `cls-pooler` uses it, as a sentence head.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Final

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import normalizers
from torch import nn
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as hf_logging

from models.encoder.config import architecture_of, read_json, read_settings, read_tokenizer
from models.encoder.heads import POOLER, Dense
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from transformers import PreTrainedConfig

    from models.encoder.config import EncoderConfig

WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
WORD_WEIGHTS = "emb_layer.weight"  # name of the only tensor of a WordWeights or WordEmbeddings module, one row per word
# Names of the dropout rates inside layers in transformers' configurations; those of heads are not listed.
DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "dropout",
    "dropout_rate",
)
_MAX_RESERVED = 8  # upper bound of the positions that an architecture reserves
# Names of a table of position embeddings in transformers' architectures; rotary and relative ones have no such table.
_TABLE = re.compile(r"(^|\.)(\w*position_embeddings?|embed_positions|positions_embed|wpe|pos_encoding)(\.|$)")
ENCODER_HALVES: Final = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
"""Encoder-decoder architecture → the class of transformers for its encoder alone."""


def load_transformer(folder: Path, config: EncoderConfig) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a transformer in fp32 and its tokenizer.

    Raises:
        EncoderError: The folder is not a model, lacks weights, or takes fewer tokens than `max_length`; its
            configuration has no dropout field to set; or its tokenizer has ids beyond its embeddings.
    """
    backbone, info = _read_backbone(folder, config)
    tokenizer = read_tokenizer(folder)
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key or config.pooling == POOLER)
    if missing or info["mismatched_keys"]:
        raise EncoderError(
            f"{folder}: {len(missing)} weights are missing (first: {missing[:3]}) and "
            f"{len(info['mismatched_keys'])} have another shape, expected a complete encoder; "
            "newly initialised layers are refused: use a folder whose weights belong to its config.json"
        )
    table: Any = backbone.get_input_embeddings()
    check_ids(folder, tokenizer, len(table.weight))
    check_length(position_limit(backbone), config, folder)
    prepare_tokenizer(tokenizer, config)
    if config.pooling != POOLER and getattr(backbone, "pooler", None) is not None:
        setattr(backbone, "pooler", None)  # noqa: B010 - of any architecture
    return backbone, tokenizer


def check_ids(folder: Path, tokenizer: PreTrainedTokenizerBase, rows: int) -> None:
    """Refuse a tokenizer with ids beyond the embedding table: an encoder would fail at the first such token.

    Raises:
        EncoderError: An id has no row.
    """
    if (last := max(tokenizer.get_vocab().values(), default=-1)) >= rows:
        raise EncoderError(
            f"{folder}: a table of {rows} rows and a tokenizer with ids up to {last}, expected a row for each; give "
            "the folder whose tokenizer belongs to its weights, or enlarge the table (resize_token_embeddings)"
        )


def refuse_dropout(place: Path, config: EncoderConfig, kind: str) -> None:
    """Refuse a dropout rate for an encoder of a kind that has no dropout.

    Raises:
        EncoderError: The configuration has a dropout rate.
    """
    if config.dropout is not None:
        raise EncoderError(f"{place}: {kind} has no dropout, encoder.dropout asks for {config.dropout}; leave it unset")


def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: EncoderConfig) -> None:
    """Give a tokenizer a padding token if it has none, and the configured casing."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # any token can pad, since padding is masked; decoders often lack one
    if config.lower_case:
        _lower_case(tokenizer)


def take_pooler(backbone: Any, folder: Path) -> Dense:  # noqa: ANN401  of any kind
    """Remove a transformer's pooler and return it as a sentence head.

    Raises:
        EncoderError: It has no pooler, or one that is not a dense layer and a tanh.
    """
    pooler = getattr(backbone, "pooler", None)
    dense, activation = (getattr(pooler, name, None) for name in ("dense", "activation"))
    if not isinstance(dense, nn.Linear) or not isinstance(activation, nn.Tanh):
        raise EncoderError(
            f"{folder}: a {backbone.config.model_type} without a pooler of a dense layer and a tanh, which "
            f"encoder.pooling={POOLER} reads; set encoder.pooling=cls"
        )
    backbone.pooler = None
    with torch.device("meta"):  # draws no random numbers
        head = Dense(dense.in_features, dense.out_features)
    head.linear = dense
    return head


def _read_backbone(folder: Path, config: EncoderConfig) -> tuple[PreTrainedModel, dict[str, Any]]:
    described = read_json(folder / "config.json")
    if "auto_map" in described and described.get("model_type") not in CONFIG_MAPPING:
        raise EncoderError(
            f"{folder}: a {described.get('model_type')} is custom code ({', '.join(described['auto_map'])}), which "
            "is not run, expected an architecture of transformers; choose a model that needs no remote code"
        )
    with quiet_transformers():
        settings = read_settings(folder)
        settings.output_hidden_states = False  # requested in each call if pooling needs them
        if config.dropout is not None:
            _set_dropout(settings, config.dropout, folder)
        kind: Any = _half_of(settings) or AutoModel
        backbone, info = kind.from_pretrained(
            str(folder), config=settings, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    return backbone, info


def _half_of(settings: PreTrainedConfig) -> Any:  # noqa: ANN401  a class, or None
    name = ENCODER_HALVES.get(settings.model_type)
    return name and getattr(transformers, name)  # imports only that architecture


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bar and its warnings of missing or unused weights; callers check these."""
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
    """Check the configured maximal length against the transformer's limit `most`; None for no limit.

    Raises:
        EncoderError: It is longer.
    """
    if most is not None and config.length > most:
        raise EncoderError(
            f"{folder}: the model takes {most} tokens, max_length asks for {config.length}; lower max_length"
        )


def position_limit(backbone: PreTrainedModel) -> int | None:
    """Return the longest input in tokens for which a transformer has position embeddings; None for no limit.

    Rotary and relative architectures have `max_position_embeddings` too, but compute longer positions.
    """
    positions = getattr(backbone.config, "max_position_embeddings", None)
    weights = itertools.chain(backbone.named_parameters(), backbone.named_buffers())
    if not isinstance(positions, int) or not any(_TABLE.search(name) for name, _ in weights):
        return None
    # In RoBERTa-like models the first token's position is the padding id + 1: of 514 positions tokens use 512.
    table = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return positions - (0 if padding is None else padding + 1)


def position_limit_of(folder: Path, wanted: int) -> int | None:
    """Return `position_limit` of a folder's transformer; None also if `wanted` is clearly within the limit."""
    if architecture_of(folder) not in CONFIG_MAPPING:
        return None  # loading raises an error for an unknown architecture
    settings = read_settings(folder)
    positions = getattr(settings, "max_position_embeddings", None)
    if not isinstance(positions, int) or wanted <= positions - _MAX_RESERVED:
        return None
    with torch.device("meta"):  # the limit depends on its layers; weights on "meta" cost no memory
        half = _half_of(settings)
        made: Any = AutoModel.from_config if half is None else half._from_config
        return position_limit(made(settings))


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    core = tokenizer.backend_tokenizer
    own = json.loads(core.to_str())["normalizer"] or {}
    if "Lowercase" in {own.get("type"), *(step["type"] for step in own.get("normalizers", [])[:1])}:
        return  # an earlier load has added it
    steps = [normalizers.Lowercase(), *([core.normalizer] if core.normalizer is not None else [])]
    core.normalizer = normalizers.Sequence(steps)


def write_json(path: Path, content: object) -> None:
    """Write settings as JSON with sorted keys, so that equal settings give equal bytes."""
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of a module's folder, by name.

    Raises:
        EncoderError: The folder has no weights, they are damaged, or a pickle contains more than tensors.
    """
    path = next((folder / name for name in (WEIGHTS, PICKLED) if (folder / name).is_file()), None)
    if path is None:
        raise EncoderError(f"{folder}: no weights, expected {WEIGHTS} or {PICKLED}; check that the copy is complete")
    try:
        tensors: dict[str, torch.Tensor] = (
            load_file(path) if path.name == WEIGHTS else torch.load(path, map_location="cpu", weights_only=True)
        )
    except UnpicklingError as error:
        # torch's message goes on to explain how to run code from the file; leave that out.
        reason = str(error).partition("WeightsUnpickler error: ")[2].partition(". Please")[0]
        raise EncoderError(
            f"{path}: contains more than tensors ({reason}), and no code of a file is run; ask its authors for "
            f"{WEIGHTS}"
        ) from error
    except (OSError, SafetensorError, RuntimeError, ValueError, EOFError) as error:
        raise EncoderError(f"{path}: weights not readable ({error}); check that the copy is complete") from error
    return tensors


def write_weights(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors as `model.safetensors`."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)
