"""Read and check the modules of a sentence-transformers folder: their kinds and order, its heads and its pooling.

To add a sentence head, write its class in `heads.py` and add it to `SENTENCE_HEADS`; a token head, in `cnn.py` and
`TOKEN_HEADS`.
"""

from __future__ import annotations

import ast
import itertools
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from models.encoder.config import read_json, read_tokenizer
from models.encoder.heads import (
    AFTER_FIRST,
    FIRST_LAYER,
    LAYERS,
    PLUS,
    SENTENCES,
    TOKENS,
    Dense,
    Dropout,
    Head,
    LayerNorm,
    Normalize,
    layer_weights,
    token_pooling,
)
from models.encoder.transformer import WORD_WEIGHTS, read_weights, write_json, write_weights
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from models.encoder.config import Pooling

logger = logging.getLogger(__name__)

SENTENCE_HEADS: Final[dict[str, type[Head]]] = {
    "Dense": Dense,
    "Normalize": Normalize,
    "LayerNorm": LayerNorm,
    "Dropout": Dropout,
}
TOKEN_HEADS: Final = ("CNN", "TokenReLU")
"""Classes of `cnn.py`, which is imported only if a folder has one."""
BACKBONES: Final = ("Transformer", "WordEmbeddings", "StaticEmbedding")
"""Modules that may come first. They output token vectors; StaticEmbedding also pools them."""
AFTER: Final[dict[str, tuple[str, ...]]] = {
    "WeightedLayerPooling": ("Transformer",),
    **dict.fromkeys(TOKEN_HEADS, ("Transformer", "WordEmbeddings", "WeightedLayerPooling", *TOKEN_HEADS)),
    "WordWeights": ("Transformer", "WordEmbeddings", *TOKEN_HEADS),
    "Pooling": ("Transformer", "WordEmbeddings", "WeightedLayerPooling", "WordWeights", *TOKEN_HEADS),
    **dict.fromkeys(SENTENCE_HEADS, ("Pooling", "StaticEmbedding", *SENTENCE_HEADS)),
}
"""Module → the modules that it may directly follow."""
LAST: Final = ("Pooling", "StaticEmbedding", *SENTENCE_HEADS)
UNSUPPORTED: Final = {
    "BoW": "has one dimension per word of its vocabulary; score TF-IDF instead",
    "LSTM": "is a recurrent network; train a CNN instead",
    "CLIPModel": "also embeds images; give an encoder of texts only",
    "SpladePooling": "has one dimension per word of its vocabulary (a sparse encoder); give a dense encoder",
    "SparseStaticEmbedding": "has one dimension per word of its vocabulary (a sparse encoder); give a dense encoder",
    "SparseAutoEncoder": "makes vectors sparse; give the dense encoder that it was trained on",
    "MultiVectorMask": "has one vector per token (late interaction); give an encoder with one vector per sentence",
}
"""Unsupported module of sentence-transformers → reason and remedy."""
THROUGH_PYTHON: Final = "You can evaluate it from Python, as an object with a method encode(list[str])"
_ROUTER: Final = re.compile(r"sentence_transformers\..*\.Router")
_TEXT: Final = "text"


SWITCHES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean-sqrt",
    "pooling_mode_weightedmean_tokens": "weighted",
    "pooling_mode_lasttoken": "last",
}
"""Setting of releases before 6 → pooling; the vectors of several poolings are concatenated in this order."""
NAMES: dict[str, str] = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean-sqrt": "mean_sqrt_len_tokens",
    "weighted": "weightedmean",
    "last": "lasttoken",
}
"""Pooling → its name in releases since 6."""


@dataclass(frozen=True)
class SavedModule:
    """A module as `modules.json` lists it.

    Attributes:
        kind: Class name in sentence-transformers, without its package; `TokenReLU` for a `Dense` on tokens.
        folder: The module's folder; need not exist if it has neither settings nor weights.
    """

    kind: str
    folder: Path


def read_modules(folder: Path) -> list[SavedModule]:
    """Read the modules of a folder in their order.

    Raises:
        EncoderError: A module is unknown, custom code, or in a position that is not supported.
    """
    listed = list(without_router(read_json(folder / "modules.json"), folder))
    if any(Path(entry["path"]).is_absolute() or ".." in Path(entry["path"]).parts for entry in listed):
        raise EncoderError(f"{folder}: modules.json names folders outside it. Get the model from its publisher again.")
    foreign = [str(entry["type"]) for entry in listed if not str(entry["type"]).startswith("sentence_transformers.")]
    if foreign:
        raise EncoderError(
            f"{folder}: {', '.join(foreign)} is custom code, which is never run, expected modules of "
            f"sentence-transformers. {THROUGH_PYTHON}."
        )
    modules = [_module(entry, folder) for entry in listed]
    if reasons := [f"{module.kind} {UNSUPPORTED[module.kind]}" for module in modules if module.kind in UNSUPPORTED]:
        raise EncoderError(f"{folder}: unsupported module: {', '.join(reasons)}. {THROUGH_PYTHON}.")
    _check_order(folder, [module.kind for module in modules])
    return modules


def _check_order(folder: Path, kinds: Sequence[str]) -> None:
    first, last = kinds[0] if kinds else "", kinds[-1] if kinds else ""
    misplaced = [
        f"{kind} follows {before}, expected it after {' | '.join(AFTER[kind])}"
        if kind in AFTER
        else f"unknown module {kind}"
        for before, kind in itertools.pairwise(kinds)
        if before not in AFTER.get(kind, ())
    ]
    if first not in BACKBONES:
        misplaced.insert(0, f"expected {' | '.join(BACKBONES)} first")
    elif last not in LAST:
        misplaced.append(f"expected {' | '.join(LAST)} last")
    if misplaced:
        raise EncoderError(
            f"{folder}: modules {' → '.join(kinds) or 'none'}: {misplaced[0]}. Use the transformer's own folder and "
            f"set encoder.pooling. {THROUGH_PYTHON}."
        )


def _module(entry: Mapping[str, Any], folder: Path) -> SavedModule:
    kind, path = str(entry["type"]).rpartition(".")[2], folder / entry["path"]
    if kind == "Dense":
        settings = read_json(path / Dense.settings_file, {})
        if all(settings.get(name) == TOKENS for name in ("module_input_name", "module_output_name")):
            kind = "TokenReLU"
    return SavedModule(kind, path)


def without_router(listed: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Mapping[str, Any]]:
    """Replace a Router in `modules.json` by the modules of its route for texts without a task.

    Raises:
        EncoderError: A Router has no such route.
    """
    for entry in listed:
        if not _ROUTER.fullmatch(str(entry["type"])):
            yield entry
            continue
        router = folder / entry["path"]
        settings = read_json(router / "router_config.json")
        route = _route(settings, router)
        logger.info("%s: using the route %s of %s", router, route, ", ".join(settings["structure"]))
        for name in settings["structure"][route]:
            yield {"type": settings["types"][name], "path": f"{entry['path'] or '.'}/{name}"}


def _route(settings: Mapping[str, Any], folder: Path) -> str:
    """Return the route for texts without a task, by the rules of sentence-transformers' Router."""
    routes, options = settings["structure"], settings.get("parameters") or {}
    mapped = {ast.literal_eval(key): route for key, route in (options.get("route_mappings") or {}).items()}
    default = options.get("default_route") or (next(iter(routes)) if options.get("allow_empty_key", True) else None)
    candidates = [mapped.get((None, _TEXT)), mapped.get((None, None)), _TEXT if _TEXT in routes else None, default]
    found = next((route for route in candidates if route is not None), None)
    if found not in routes:
        raise EncoderError(
            f"{folder}: selects {' or '.join(routes)} by task, and has no default route for texts without a task. Give "
            "the folder of one route, or set default_route."
        )
    return str(found)


def read_head(saved: SavedModule) -> Head:
    """Read a head with its weights, in fp32; draws no random numbers.

    Raises:
        EncoderError: Settings are missing or not supported, or the weights do not fit the settings.
    """
    kind = _class_of(saved.kind)
    settings = read_json(saved.folder / kind.settings_file, {})
    names = {settings.get(name) or SENTENCES for name in ("module_input_name", "module_output_name")}
    if saved.kind in SENTENCE_HEADS and names != {SENTENCES}:
        raise EncoderError(
            f"{saved.folder}: {saved.kind} reads or writes {' and '.join(sorted(names))}, expected {SENTENCES}. Choose "
            "a model whose modules use sentence vectors."
        )
    try:
        with torch.device("meta"):
            head = kind.build(settings)
    except KeyError as error:
        raise EncoderError(
            f"{saved.folder}: {kind.settings_file} lacks {error}. Check that the copy is complete."
        ) from error
    except EncoderError as error:
        raise EncoderError(f"{saved.folder}: {error}") from error
    if not head.state_dict():
        return head
    weights = {name: tensor.float() for name, tensor in read_weights(saved.folder).items()}
    try:
        head.load_state_dict(weights, assign=True)
        head.check_weights()
    except RuntimeError as error:
        raise EncoderError(
            f"{saved.folder}: weights and {kind.settings_file} do not match ({error}). Check that the copy is complete."
        ) from error
    except EncoderError as error:
        raise EncoderError(f"{saved.folder}: {error}") from error
    return head


def _class_of(kind: str) -> type[Head]:
    if kind in SENTENCE_HEADS:
        return SENTENCE_HEADS[kind]
    from models.encoder.cnn import CNN, TokenReLU

    token_heads: dict[str, type[Head]] = {"CNN": CNN, "TokenReLU": TokenReLU}
    return token_heads[kind]


def name_of(head: Head) -> str:
    """Return a head's class name in sentence-transformers."""
    return head.saved_as or type(head).__name__


def write_head(head: Head, folder: Path) -> None:
    """Write a head's settings and weights, if it has any, into an existing folder."""
    if settings := head.settings():
        write_json(folder / head.settings_file, settings)
    if weights := head.state_dict():
        write_weights(folder, weights)


def read_pooling(folder: Path) -> str:
    """Read the pooling from a pooling module's folder.

    Raises:
        EncoderError: The pooling is not supported.
    """
    settings = read_json(folder / "config.json")
    switches = [switch for switch, on in settings.items() if on is True and "_mode_" in switch]
    found = settings.get("pooling_mode") or switches
    modes = [found] if isinstance(found, str) else list(found)
    known = SWITCHES | {name: pooling for pooling, name in NAMES.items()}
    if unknown := [mode for mode in modes if mode not in known]:
        raise EncoderError(
            f"{folder}: unknown pooling {' + '.join(unknown)}, expected {', '.join(NAMES.values())}. {THROUGH_PYTHON}."
        )
    if not modes:
        return "mean"  # sentence-transformers' default if no switch is on
    order = list(SWITCHES)
    ordered = sorted(modes, key=order.index) if all(mode in SWITCHES for mode in modes) else modes
    return PLUS.join(known[mode] for mode in ordered)


def over_layers(folder: Path, pooling: str) -> str:
    """Return the pooling that averages the layers of a WeightedLayerPooling module's folder.

    Raises:
        EncoderError: The weights belong to no pooling of `LAYERS`.
    """
    settings, weights = read_json(folder / "config.json"), read_weights(folder)["layer_weights"]
    count, shares = len(weights), weights / weights.max()
    matches = [
        name
        for name, layers in LAYERS.items()
        # A network of one layer has no layer before the last.
        if token_pooling(name) == pooling and count >= -min(layers) and torch.equal(shares, layer_weights(name, count))
    ]
    if settings["layer_start"] != FIRST_LAYER or not matches:
        raise EncoderError(
            f"{folder}: layer weights {weights.tolist()} from layer {settings['layer_start']} for pooling {pooling}, "
            f"expected those of {' or '.join(LAYERS)} from layer {FIRST_LAYER}. Choose another checkpoint."
        )
    return matches[0]


def after_first(folder: Path, transformer: Path, pooling: str) -> str:
    """Return `mean-after-first` if a WordWeights folder gives the first token weight 0 and all others 1.

    Raises:
        EncoderError: The weights differ from that, or the pooling is not mean.
    """
    weights = read_weights(folder)[WORD_WEIGHTS][:, 0]
    tokenizer = read_tokenizer(transformer)
    expected = torch.ones(len(weights))
    expected[tokenizer.cls_token_id or 0] = 0.0
    if pooling != "mean" or not torch.equal(weights.float(), expected):
        raise EncoderError(
            f"{folder}: {int((weights != 1).sum())} of {len(weights)} tokens have another weight than 1 (pooling "
            f"{pooling}), expected weight 0 for the first token of a text only (pooling mean). {THROUGH_PYTHON}."
        )
    return AFTER_FIRST
