"""Load a pretrained transformer and its tokenizer.

A missing weight is an error, since a newly initialised layer would make scores meaningless. The pooler that some
architectures have is removed: only `cls-pooler` uses it, as a sentence head.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final

import torch
import transformers
from tokenizers import normalizers
from torch import nn
from torch.nn import functional
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.activations import GELUActivation
from transformers.utils import logging as hf_logging

from bsl.models.encoder.config import architecture_of, read_json, read_settings, read_tokenizer
from bsl.models.encoder.heads import Dense
from bsl.models.encoder.pooling import pooling_of
from bsl.models.encoder.tokenizer_check import check_tokenizer
from bsl.models.encoder.weights import files_to_load, refuse_pointers
from bsl.models.errors import EncoderError
from bsl.storage.process_setting import ProcessSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from transformers import PreTrainedConfig

    from bsl.models.encoder.config import EncoderConfig

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
        EncoderError: The folder is not a model, lacks weights, or accepts fewer tokens than `max_length`; its
            configuration has no dropout field to set; its tokenizer does not belong to it (`check_tokenizer`); or a
            file is a Git LFS pointer.
    """
    refuse_pointers(files_to_load(folder))
    backbone, info = _read_backbone(folder, config)
    tokenizer = read_tokenizer(folder)
    uses_pooler = pooling_of(config.pooling).uses_pooler
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key or uses_pooler)
    if missing or info["mismatched_keys"]:
        raise EncoderError(
            f"{folder}: {len(missing)} weights are missing (first: {missing[:3]}) and {len(info['mismatched_keys'])} "
            "have another shape, expected a complete encoder. Use a folder whose weights match its config.json."
        )
    table: Any = backbone.get_input_embeddings()
    check_tokenizer(folder, tokenizer, len(table.weight))
    check_length(position_limit(backbone), config, folder)
    prepare_tokenizer(tokenizer, config)
    if not uses_pooler and getattr(backbone, "pooler", None) is not None:
        setattr(backbone, "pooler", _NoPooler())  # noqa: B010 - of any architecture
    return backbone, tokenizer


def refuse_dropout(path: Path, config: EncoderConfig, kind: str) -> None:
    """Refuse a dropout rate for an encoder of a kind that has no dropout.

    Raises:
        EncoderError: The configuration has a dropout rate.
    """
    if config.dropout is not None:
        raise EncoderError(
            f"{path}: {kind} has no dropout, but encoder.dropout is {config.dropout}. Unset encoder.dropout."
        )


def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: EncoderConfig) -> None:
    """Give a tokenizer a padding token if it has none, and the configured casing."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token  # any token can pad, since padding is masked; decoders often lack one
    if config.lower_case:
        _lower_case(tokenizer)


class _NoPooler(nn.Module):
    """Takes the place of a removed pooler, which some architectures call without asking whether there is one."""

    def forward(self, x_BTD: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        """Return the input, which nobody reads."""
        return x_BTD


def unused_pooler(backbone: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Return weights for the pooler that loading removed, so that other programs report no missing weights.

    Its layer is the identity, so that its output is tanh of the first token's vector, which fine-tuning can start from.
    Empty if the architecture has no pooler.
    """
    with torch.device("meta"):  # needs no memory and draws no random numbers
        complete = type(backbone)(backbone.config).state_dict()
    own = backbone.state_dict().keys()
    return {
        name: _neutral(name, tuple(weights.shape))
        for name, weights in complete.items()
        if "pooler" in name and name not in own
    }


def _neutral(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the identity for a matrix, and for a vector 1 if it scales (a norm's weight), 0 if it is added."""
    if len(shape) == 2:
        return torch.eye(*shape)
    return torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)


def take_pooler(backbone: Any, folder: Path) -> Dense:  # noqa: ANN401  of any kind
    """Remove a transformer's pooler and return it as a sentence head.

    Raises:
        EncoderError: It has no pooler, one that is not a dense layer and a tanh, or the identity of `unused_pooler`.
    """
    pooler = getattr(backbone, "pooler", None)
    dense, activation = (getattr(pooler, name, None) for name in ("dense", "activation"))
    if not isinstance(dense, nn.Linear) or not isinstance(activation, nn.Tanh):
        raise EncoderError(
            f"{folder}: encoder.pooling=cls-pooler needs a pooler with a dense layer and tanh, which this "
            f"{backbone.config.model_type} lacks. Set encoder.pooling=cls."
        )
    if torch.equal(dense.weight, torch.eye(*dense.weight.shape)) and not dense.bias.any():
        raise EncoderError(
            f"{folder}: encoder.pooling=cls-pooler needs a trained pooler (found the identity, which is saved for "
            "other programs). Set encoder.pooling=cls."
        )
    backbone.pooler = _NoPooler()
    with torch.device("meta"):  # draws no random numbers
        head = Dense(dense.in_features, dense.out_features)
    head.linear = dense
    return head


def _read_backbone(folder: Path, config: EncoderConfig) -> tuple[PreTrainedModel, dict[str, Any]]:
    settings = read_json(folder / "config.json")
    if "auto_map" in settings and settings.get("model_type") not in CONFIG_MAPPING:
        raise EncoderError(
            f"{folder}: the architecture {settings.get('model_type')} is custom code "
            f"({', '.join(settings['auto_map'])}), which is never run. Choose a model with an architecture of "
            "transformers."
        )
    with quiet_transformers():
        described = read_settings(folder)
        # Encoders ask for hidden states in each call that needs them, and read named outputs.
        described.output_hidden_states, described.output_attentions, described.return_dict = False, False, True
        if config.dropout is not None:
            _set_dropout(described, config.dropout, folder)
        kind: Any = _half_of(described) or AutoModel
        backbone, info = kind.from_pretrained(
            str(folder),
            config=described,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    return backbone, info


def _half_of(settings: PreTrainedConfig) -> Any:  # noqa: ANN401  a class, or None
    name = ENCODER_HALVES.get(settings.model_type)
    return name and getattr(transformers, name)  # imports only that architecture


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and its warnings of missing or unused weights; callers check these."""
    with _VERBOSITY.set_to(logging.ERROR), _BARS.set_to(_without_bar):
        yield


def _without_bar(_: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> object:
    # A real bar, even disabled, would fix the process's way to start others (`multiprocessing`'s start method).
    return hf_logging.EmptyTqdm(*args, **options)  # type: ignore[no-untyped-call]


_VERBOSITY: Final = ProcessSetting(hf_logging.get_verbosity, hf_logging.set_verbosity)
# A hook, because `disable_progress_bar` also forgets which bars of huggingface_hub the caller has switched off.
_BARS: Final[ProcessSetting[Callable[..., Any] | None]] = ProcessSetting(
    lambda: hf_logging.set_tqdm_hook(None), hf_logging.set_tqdm_hook
)


def _set_dropout(settings: PreTrainedConfig, rate: float, folder: Path) -> None:
    known = [name for name in DROPOUTS if hasattr(settings, name)]
    if not known:
        raise EncoderError(
            f"{folder}: the configuration of this {settings.model_type} has no dropout field (expected one of "
            f"{', '.join(DROPOUTS)}). Set its dropout in config.json, and unset encoder.dropout."
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
            f"{folder}: the model accepts at most {most} tokens, but encoder.max_length is {config.length}. Lower "
            "encoder.max_length."
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


def position_limit_of(folder: Path, length: int) -> int | None:
    """Return `position_limit` of a folder's transformer; None also if `length` is clearly within the limit."""
    if architecture_of(folder) not in CONFIG_MAPPING:
        return None  # loading raises an error for an unknown architecture
    settings = read_settings(folder)
    positions = getattr(settings, "max_position_embeddings", None)
    if not isinstance(positions, int) or length <= positions - _MAX_RESERVED:
        return None
    with torch.device("meta"):  # the limit depends on its layers; weights on "meta" cost no memory
        build: Any = _half_of(settings) or AutoModel.from_config
        return position_limit(build(settings))


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    core = tokenizer.backend_tokenizer
    normalizer = json.loads(core.to_str())["normalizer"] or {}
    if "Lowercase" in {normalizer.get("type"), *(step["type"] for step in normalizer.get("normalizers", []))}:
        return  # the library adds no second one
    steps = [normalizers.Lowercase(), *([core.normalizer] if core.normalizer is not None else [])]
    core.normalizer = normalizers.Sequence(steps)


class ProductWithGelu(nn.Module):
    """GELU(x·Wᵀ + b) as one kernel, which saves a pass over the widest vectors of a layer.

    On a GPU cuBLAS computes GELU by its tanh form, which differs from the exact one by at most 5e-4: less than bf16
    rounds.
    """

    def __init__(self, linear: nn.Linear) -> None:
        """Take the weights of a linear layer with a bias."""
        super().__init__()
        self.linear = linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map vectors (…, D) to (…, E)."""
        return torch.unflatten(product_with_gelu(x.flatten(0, -2), self.linear), 0, x.shape[:-1])


def product_with_gelu(x_ND: torch.Tensor, linear: nn.Linear) -> torch.Tensor:
    """Return GELU(x·Wᵀ + b), (N, E), by one kernel, or by two where torch has no such kernel."""
    if not hasattr(torch, "_addmm_activation"):
        return functional.gelu(linear(x_ND), approximate="tanh" if x_ND.is_cuda else "none")
    output_NE: torch.Tensor = torch._addmm_activation(linear.bias, x_ND, linear.weight.t(), use_gelu=True)
    return output_NE


def rounded_copy(transformer: PreTrainedModel) -> PreTrainedModel:
    """Return a copy for inference on NVIDIA GPUs: weights, but not buffers, in bf16, GELU in the product before it.

    For frozen weights this is faster than autocast, which computes norms and their inputs in fp32.
    """
    halves = {id(weight): nn.Parameter(weight.bfloat16(), requires_grad=False) for weight in transformer.parameters()}
    copied = copy.deepcopy(transformer, halves)
    for layer in copied.modules():
        linear, activation = getattr(layer, "dense", None), getattr(layer, "intermediate_act_fn", None)
        if isinstance(linear, nn.Linear) and linear.bias is not None and isinstance(activation, GELUActivation):
            # BERT-like models call `dense`, then `intermediate_act_fn`.
            layer.dense, layer.intermediate_act_fn = ProductWithGelu(linear), nn.Identity()
    return copied
