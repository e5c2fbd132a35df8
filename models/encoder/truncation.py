"""`truncate_dim` of a sentence-transformers folder: how many dimensions of its vectors it keeps, the first ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.encoder.files import read_json
from models.encoder.pooling import AND
from models.encoder.saved_pooling import read_pooling
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from models.encoder.modules import SavedModule

_SETTINGS = "config_sentence_transformers.json"


def read_kept(folder: Path, modules: Sequence[SavedModule]) -> int | None:
    """How many dimensions a folder keeps of what its modules give; None for all, which may be fewer than it allows.

    Raises:
        EncoderError: It is no number of dimensions.
    """
    kept = read_json(folder / _SETTINGS, {}).get("truncate_dim")
    if kept is None:
        return None
    if type(kept) is not int or kept < 1:
        raise EncoderError(
            f"{folder}: truncate_dim is {kept!r}, expected a whole number from 1; correct it in {_SETTINGS}"
        )
    width = _width(modules)
    return None if width is not None and kept >= width else kept


def _width(modules: Sequence[SavedModule]) -> int | None:
    """The width that the last module which sets one has; None where none says it, as a static table."""
    for module in reversed(modules):
        if module.kind == "Dense":
            return int(read_json(module.folder / "config.json")["out_features"])
        if module.kind == "Pooling":
            settings = read_json(module.folder / "config.json")
            width = settings.get("embedding_dimension", settings.get("word_embedding_dimension"))
            return None if width is None else int(width) * len(read_pooling(module.folder).split(AND))
    return None
