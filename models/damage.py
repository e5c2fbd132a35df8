"""A model's folder that is damaged: the libraries that read it raise anything, down to a panic of their Rust parts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PANICS = "pyo3_runtime"  # whose PanicException is no Exception


@contextmanager
def damage_named(folder: Path, kind: type[ModelError]) -> Iterator[None]:
    """Turn whatever reading a model's folder raises into one error that names the folder.

    Errors of this package pass, and so does a machine that is too small: neither says anything of the folder.

    Args:
        folder: What is read inside the block, and nothing else may be done there.
        kind: The error to raise.

    Raises:
        ModelError: Of that kind.
    """
    try:
        yield
    except (ModelError, MemoryError, torch.OutOfMemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != _PANICS:
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise kind(
            f"{folder}: cannot be loaded ({reason:.300}); check that the copy is complete and that its files belong "
            "together"
        ) from error
