"""How the folder of a sentence-transformers model says that its token vectors are pooled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers import AutoTokenizer

from models.encoder.files import WORD_WEIGHTS, read_json, read_weights
from models.encoder.pooling import AFTER_FIRST, AND, FIRST, LAYERS, layer_weights, way_of
from models.encoder.serialization.modules import OTHERWISE
from models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from models.encoder.config import Pooling

SWITCHES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean-sqrt",
    "pooling_mode_weightedmean_tokens": "weighted",
    "pooling_mode_lasttoken": "last",
}
"""Setting of releases before 6 → pooling; of several that are on, the vectors stand in this order."""
NAMES: dict[str, str] = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean-sqrt": "mean_sqrt_len_tokens",
    "weighted": "weightedmean",
    "last": "lasttoken",
}
"""Pooling → what releases since 6 call it."""


def read_pooling(folder: Path) -> str:
    """How a pooling module's folder says that token vectors are pooled.

    Raises:
        EncoderError: In a way that is not computed here.
    """
    settings = read_json(folder / "config.json")
    switches = [switch for switch, on in settings.items() if on is True and "_mode_" in switch]
    named = settings.get("pooling_mode") or switches
    modes = [named] if isinstance(named, str) else list(named)
    known = SWITCHES | {name: pooling for pooling, name in NAMES.items()}
    if unknown := [mode for mode in modes if mode not in known]:
        raise EncoderError(
            f"{folder}: pools by {' + '.join(unknown)}, expected {', '.join(NAMES.values())}; {OTHERWISE}"
        )
    if not modes:
        return "mean"  # as sentence-transformers reads settings in which none is on
    order = list(SWITCHES)
    switched = sorted(modes, key=order.index) if all(mode in SWITCHES for mode in modes) else modes
    return AND.join(known[mode] for mode in switched)


def over_layers(folder: Path, pooling: str) -> str:
    """The pooling of an average over layers, as a folder weighs them.

    Raises:
        EncoderError: Of other layers than are averaged here.
    """
    settings, weights = read_json(folder / "config.json"), read_weights(folder)["layer_weights"]
    alike = [name for name in LAYERS if way_of(name) == pooling and _same_layers(weights, name)]
    if settings["layer_start"] != FIRST or not alike:
        raise EncoderError(
            f"{folder}: weighs layers from {settings['layer_start']} by {weights.tolist()} for {pooling}, expected "
            f"the layers of {' or '.join(LAYERS)}, from {FIRST}; choose another checkpoint"
        )
    return alike[0]


def after_first(folder: Path, transformer: Path, pooling: str) -> str:
    """The pooling of an average without the first token, written as weight 0 of that token and 1 of all others.

    Raises:
        EncoderError: Tokens are weighed otherwise.
    """
    weights = read_weights(folder)[WORD_WEIGHTS][:, 0]
    tokenizer = AutoTokenizer.from_pretrained(str(transformer), local_files_only=True)
    expected = torch.ones(len(weights))
    expected[tokenizer.cls_token_id or 0] = 0.0
    if pooling != "mean" or not torch.equal(weights.float(), expected):
        raise EncoderError(
            f"{folder}: weighs {int((weights != 1).sum())} of {len(weights)} tokens otherwise than by 1 for pooling "
            f"{pooling}, expected the first token of a text alone, by 0, for mean; {OTHERWISE}"
        )
    return AFTER_FIRST


def _same_layers(weights: torch.Tensor, pooling: str) -> bool:
    """Whether weights are those of a pooling, up to a factor."""
    expected = layer_weights(pooling, len(weights))
    return bool(weights.max() > 0 and torch.equal(weights / weights.max(), expected))
