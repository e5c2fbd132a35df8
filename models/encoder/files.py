"""The files of a model folder: JSON settings and weights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"


def read_json(path: Path, absent: Any = None) -> Any:  # noqa: ANN401 - whatever the file holds
    """What a JSON file holds, or `absent`, where given, if there is no file.

    Raises:
        EncoderError: The file cannot be read as JSON.
    """
    if absent is not None and not path.is_file():
        return absent
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path}: not readable as JSON ({error}); check that the copy is complete") from error


def write_json(path: Path, content: object) -> None:
    """Write settings so that equal ones give equal bytes."""
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Tensors of a module's folder by name; of a pickle nothing but tensors is taken.

    Raises:
        EncoderError: The folder has no weights, or they are damaged.
    """
    try:
        if (folder / WEIGHTS).is_file():
            return load_file(folder / WEIGHTS)
        if (folder / PICKLED).is_file():
            pickled: dict[str, torch.Tensor] = torch.load(folder / PICKLED, map_location="cpu", weights_only=True)
            return pickled
    except (OSError, SafetensorError, RuntimeError, ValueError, EOFError) as error:
        raise EncoderError(
            f"{folder}: its weights are not readable ({error}); check that the copy is complete"
        ) from error
    raise EncoderError(f"{folder}: no weights, expected {WEIGHTS} or {PICKLED}; check that the copy is complete")


def write_weights(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors as `model.safetensors`."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)
