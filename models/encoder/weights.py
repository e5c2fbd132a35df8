"""Read and write the weights and settings of a module's folder; refuse files that Git left as pointers.

Clones without Git LFS have pointers in place of weights.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from bsl.models.errors import EncoderError
from bsl.storage.filesystem.model_folder import PICKLED, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WORD_WEIGHTS: Final = "emb_layer.weight"
"""Name of the only tensor of a WordWeights or WordEmbeddings module, one row per word."""
_START: Final = b"version https://git-lfs.github.com/spec/"
_MOST_BYTES: Final = 1024  # of a pointer, by Git LFS's specification
_INDEX: Final = ".index.json"  # end of the name of a file that lists the shards of weights
_WEIGHTS: Final = (WEIGHTS, f"{WEIGHTS}{_INDEX}", PICKLED, f"{PICKLED}{_INDEX}")
_OTHERS: Final = (".json", ".txt", ".model")


def write_json(path: Path, content: object) -> None:
    """Write settings as JSON with sorted keys, so that equal settings give equal bytes."""
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of a module's folder, by name.

    Raises:
        EncoderError: The folder has no weights, or they are damaged.
        UnpicklingError: A pickle contains more than tensors; `load_errors` explains it.
    """
    path = next((folder / name for name in (WEIGHTS, PICKLED) if (folder / name).is_file()), None)
    if path is None:
        raise EncoderError(f"{folder}: no weights, expected {WEIGHTS} or {PICKLED}. Check that the copy is complete.")
    refuse_pointers([path])
    try:
        tensors: dict[str, torch.Tensor] = (
            load_file(path) if path.name == WEIGHTS else torch.load(path, map_location="cpu", weights_only=True)
        )
    except (OSError, SafetensorError, RuntimeError, ValueError, EOFError) as error:
        raise EncoderError(f"{path}: cannot read the weights ({error}). Check that the copy is complete.") from error
    return tensors


def write_weights(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors as `model.safetensors`."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)


def refuse_pointers(files: Iterable[Path]) -> None:
    """Refuse Git LFS pointers.

    Raises:
        EncoderError: A file is a pointer.
    """
    for path in files:
        if path.is_file() and path.stat().st_size <= _MOST_BYTES and path.read_bytes().startswith(_START):
            raise EncoderError(
                f"{path}: a Git LFS pointer, expected the file itself. Run `git lfs pull` in {path.parent}."
            )


def files_to_load(folder: Path) -> list[Path]:
    """Return the weights of a transformers folder that would be loaded, with their shards, and its settings files."""
    others = sorted(path for path in folder.glob("*") if path.suffix in _OTHERS and not path.name.endswith(_INDEX))
    weights = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        return others
    if not weights.name.endswith(_INDEX):
        return [weights, *others]
    refuse_pointers([weights])
    listed = json.loads(weights.read_text(encoding="utf-8"))["weight_map"].values()
    return [*(folder / name for name in sorted({*listed})), *others]
