"""Recognise files that Git left as pointers: clones without Git LFS have these in place of weights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from bsl.models.errors import EncoderError
from bsl.storage.filesystem.model_folder import PICKLED, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_START: Final = b"version https://git-lfs.github.com/spec/"
_MOST_BYTES: Final = 1024  # of a pointer, by Git LFS's specification
_INDEX: Final = ".index.json"  # end of the name of a file that lists the shards of weights
_WEIGHTS: Final = (WEIGHTS, f"{WEIGHTS}{_INDEX}", PICKLED, f"{PICKLED}{_INDEX}")
_OTHERS: Final = (".json", ".txt", ".model")


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
