"""The files of a model folder: JSON settings and weights."""

from __future__ import annotations

import json
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
WORD_WEIGHTS = "emb_layer.weight"  # what a module WordWeights calls its only tensor, a row a token


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
    """Tensors of a module's folder by name.

    Raises:
        EncoderError: The folder has no weights, they are damaged, or a pickle holds more than tensors.
    """
    path = next((folder / name for name in (WEIGHTS, PICKLED) if (folder / name).is_file()), None)
    if path is None:
        raise EncoderError(f"{folder}: no weights, expected {WEIGHTS} or {PICKLED}; check that the copy is complete")
    try:
        tensors: dict[str, torch.Tensor] = (
            load_file(path) if path.name == WEIGHTS else torch.load(path, map_location="cpu", weights_only=True)
        )
    except UnpicklingError as error:
        # torch's message goes on to say how to run what is in the file; that is not for us.
        reason = str(error).partition("WeightsUnpickler error: ")[2].partition(". Please")[0]
        raise EncoderError(
            f"{path}: holds more than tensors ({reason}); ask its authors for {WEIGHTS}, for code is not run from files"
        ) from error
    except (OSError, SafetensorError, RuntimeError, ValueError, EOFError) as error:
        raise EncoderError(f"{path}: weights not readable ({error}); check that the copy is complete") from error
    return tensors


def write_weights(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors as `model.safetensors`."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)
