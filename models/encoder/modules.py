"""The modules of a sentence-transformers folder that are heads here, read and written by one table.

To add one, write its class (`heads.py` or a file beside it) and its line below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from models.encoder.cnn import CNN, TOKENS, TokenReLU
from models.encoder.files import read_json, read_weights, write_json, write_weights
from models.encoder.heads import Dense, Dropout, Head, LayerNorm, Normalize
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEADS: dict[str, type[Head]] = {
    "Dense": Dense,
    "CNN": CNN,
    "Normalize": Normalize,
    "TokenReLU": TokenReLU,
    "LayerNorm": LayerNorm,
    "Dropout": Dropout,
}


@dataclass(frozen=True)
class SavedModule:
    """A module as `modules.json` lists it.

    Attributes:
        kind: Name of its class in sentence-transformers, whatever package it was in then; a `Dense` on tokens is
            a `TokenReLU` here.
        folder: Where it lies; absent if it has neither settings nor weights.
    """

    kind: str
    folder: Path


def listed_module(entry: Mapping[str, Any], folder: Path) -> SavedModule:
    """A module of `modules.json`.

    Args:
        entry: Its `type` and `path`.
        folder: The model's.
    """
    kind, place = str(entry["type"]).rpartition(".")[2], folder / entry["path"]
    if kind == TokenReLU.saved_as:
        settings = read_json(place / Dense.settings_file, {})
        if all(settings.get(name) == TOKENS for name in ("module_input_name", "module_output_name")):
            kind = TokenReLU.__name__
    return SavedModule(kind, place)


def read_head(saved: SavedModule) -> Head:
    """A head with its weights, in fp32; draws no random numbers.

    Raises:
        EncoderError: Settings are missing or ask for what is not computed here, or the weights are not those of the
            settings.
    """
    kind = HEADS[saved.kind]
    settings = read_json(saved.folder / kind.settings_file, {})
    try:
        with torch.device("meta"):
            head = kind.build(settings)
    except KeyError as error:
        raise EncoderError(
            f"{saved.folder}: {kind.settings_file} lacks {error}; check that the copy is complete"
        ) from error
    except EncoderError as error:
        raise EncoderError(f"{saved.folder}: {error}") from error
    if not head.state_dict():
        return head
    weights = {name: tensor.float() for name, tensor in read_weights(saved.folder).items()}
    try:
        head.load_state_dict(weights, assign=True)
    except RuntimeError as error:
        raise EncoderError(
            f"{saved.folder}: weights and {kind.settings_file} do not belong together ({error}); "
            "check that the copy is complete"
        ) from error
    try:
        head.check_weights()
    except EncoderError as error:
        raise EncoderError(f"{saved.folder}: {error}") from error
    return head


def name_of(head: Head) -> str:
    """What sentence-transformers calls a head."""
    return head.saved_as or next(kind for kind, known in HEADS.items() if type(head) is known)


def write_head(head: Head, folder: Path) -> None:
    """Write a head's settings and weights, as far as it has any, into a folder that is there."""
    if settings := head.settings():
        write_json(folder / head.settings_file, settings)
    if weights := head.state_dict():
        write_weights(folder, weights)
