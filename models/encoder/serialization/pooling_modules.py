"""Read and write the modules of a sentence-transformers folder that together are its pooling.

Pooling has the modes. WeightedLayerPooling before it averages layers, WordWeights before it leaves out the first token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from bsl.models.encoder.config import read_json, read_tokenizer
from bsl.models.encoder.pooling import FIRST_LAYER, LAYER_WEIGHTS, MODES, POOLINGS, TOKEN_WEIGHTS, Pooling, joined
from bsl.models.encoder.serialization.modules import THROUGH_PYTHON
from bsl.models.encoder.weights import WORD_WEIGHTS, read_weights, write_json, write_weights
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from bsl.models.encoder.network import Encoder

_MODE: Final = "pooling_mode"


def read_modes(folder: Path) -> Pooling:
    """Read the pooling of the folder of a module Pooling, apart from the modules before it.

    Raises:
        EncoderError: A mode is unknown.
    """
    settings, names = read_json(folder / "config.json"), {mode.name: mode for mode in MODES}
    known = {**names, **{mode.switch: mode for mode in MODES}}
    found = settings.get(_MODE, [mode.switch for mode in MODES if settings.get(mode.switch)])
    listed = [found] if isinstance(found, str) else list(found)
    if unknown := [name for name in listed if name not in known]:
        raise EncoderError(
            f"{folder}: unknown pooling {' + '.join(unknown)}, expected {', '.join(names)}. {THROUGH_PYTHON}."
        )
    if not listed and _MODE in settings:
        raise EncoderError(f"{folder}: pooling_mode is empty, expected at least one of {', '.join(names)}.")
    return joined([known[name] for name in listed]) if listed else POOLINGS["mean"]  # the library's default


def stated_width(folder: Path) -> Any:  # noqa: ANN401  any JSON
    """Return the width of the token vectors that a module Pooling states; None if it states none."""
    settings = read_json(folder / "config.json")
    return settings.get("embedding_dimension", settings.get("word_embedding_dimension"))


def read_pooling(folders: Mapping[str, Path], transformer: Path) -> Pooling:
    """Read the pooling of a transformer's folder.

    Args:
        folders: Folders of the modules by their names.
        transformer: The folder of the transformer.

    Raises:
        EncoderError: As `read_modes`; or modules before Pooling have weights that belong to no pooling.
    """
    pooling = read_modes(folders["Pooling"])
    if LAYER_WEIGHTS in folders:
        pooling = _over_layers(folders[LAYER_WEIGHTS], pooling, transformer)
    if TOKEN_WEIGHTS in folders:
        pooling = _after_first(folders[TOKEN_WEIGHTS], pooling, transformer)
    return pooling


def _with_module(pooling: Pooling, module: str) -> list[Pooling]:
    """Return the poolings of the same modes with another module before Pooling."""
    return [other for other in POOLINGS.values() if other.module == module and other.modes == pooling.modes]


def _over_layers(folder: Path, pooling: Pooling, transformer: Path) -> Pooling:
    if read_json(transformer / "config.json").get("output_hidden_states") is not True:
        raise EncoderError(
            f"{transformer}/config.json: output_hidden_states is not true, but the module WeightedLayerPooling "
            "averages all layers. Set it to true."
        )  # without all layers, the library skips the module
    settings, weights = read_json(folder / "config.json"), read_weights(folder)["layer_weights"]
    count, shares = len(weights), weights / weights.max()
    matches = [
        other
        for other in _with_module(pooling, LAYER_WEIGHTS)
        # A network of one layer has no layer before the last.
        if count >= -min(other.layers) and torch.equal(shares, other.layer_weights(count))
    ]
    if settings["layer_start"] != FIRST_LAYER or not matches:
        names = [other.name for other in POOLINGS.values() if other.module == LAYER_WEIGHTS]
        raise EncoderError(
            f"{folder}: layer weights {weights.tolist()} from layer {settings['layer_start']} for pooling "
            f"{pooling.name}, expected those of {' or '.join(names)} from layer {FIRST_LAYER}. Choose another "
            "checkpoint."
        )
    return matches[0]


def _after_first(folder: Path, pooling: Pooling, transformer: Path) -> Pooling:
    weights, matches = word_weights(folder), _with_module(pooling, TOKEN_WEIGHTS)
    expected = torch.ones(len(weights))
    expected[read_tokenizer(transformer).cls_token_id or 0] = 0.0
    if not matches or not torch.equal(weights, expected):
        raise EncoderError(
            f"{folder}: {int((weights != 1).sum())} of {len(weights)} tokens have another weight than 1 (pooling "
            f"{pooling.name}), expected weight 0 for the first token of a text only (pooling mean). {THROUGH_PYTHON}."
        )
    return matches[0]


def word_weights(folder: Path) -> torch.Tensor:
    """Return the weight of each row of a WordWeights folder, (V,) fp32, by the library's rule.

    The library computes the weights from the settings and ignores the folder's weights file.
    """
    settings = read_json(folder / "config.json")
    listed, other = settings["word_weights"], settings.get("unknown_word_weight", 1)
    weights = [listed.get(word, listed.get(word.lower(), other)) for word in settings["vocab"]]
    return torch.tensor(weights, dtype=torch.float32)


def write_pooling(encoder: Encoder, folder: Path) -> None:
    """Write the module Pooling."""
    modes = encoder.pooling.modes
    switches = {mode.switch: mode in modes for mode in MODES if mode in modes or not mode.is_new}
    in_order = [mode for mode in MODES if mode in modes] == list(modes)
    # Switches have a fixed order; any other order needs a list of names, which releases before 6 do not read.
    settings = switches if in_order else {_MODE: [mode.name for mode in modes]}
    unpooled = {} if encoder.pools_prompt else {"include_prompt": False}
    write_json(folder / "config.json", {"word_embedding_dimension": encoder.token_width, **settings, **unpooled})


def write_layer_weights(encoder: Encoder, folder: Path) -> None:
    """Write the layers to average, as a weight for each layer: 1, 0, …, 0, 1 for `first-last`."""
    config = encoder.backbone.config
    layers, width = int(config.num_hidden_layers), int(config.hidden_size)
    write_json(
        folder / "config.json",
        {"word_embedding_dimension": width, "layer_start": FIRST_LAYER, "num_hidden_layers": layers},
    )
    write_weights(folder, {"layer_weights": encoder.pooling.layer_weights(layers)})


def write_first_skipped(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write token weights for sentence-transformers' weighted mean: 0 for the first token, [CLS], and 1 for others."""
    first = tokenizer.cls_token_id
    if first is None:
        raise EncoderError(
            f"encoder.pooling=mean-after-first: the tokenizer {type(tokenizer).__name__} adds no token before a text "
            "that could be skipped. Set encoder.pooling=mean."
        )
    weights_V = torch.ones(len(tokenizer))
    weights_V[first] = 0.0
    vocabulary = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    write_word_weights(weights_V, vocabulary, {str(tokenizer.cls_token): 0.0}, folder)


def write_word_weights(
    weights_V: torch.Tensor, words: Sequence[str], listed: Mapping[str, float], folder: Path
) -> None:
    """Write a weight for each word as a module; those that differ from 1 are `listed` by name too."""
    write_json(folder / "config.json", {"vocab": list(words), "word_weights": listed, "unknown_word_weight": 1})
    write_weights(folder, {WORD_WEIGHTS: weights_V[:, None]})
