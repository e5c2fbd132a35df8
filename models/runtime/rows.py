"""Rows of matrices: as unit vectors, and from tensors in any form."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats = TypeVar("Floats", np.float32, np.float64)


def unit_vectors(vectors_ND: NDArray[Floats]) -> NDArray[Floats]:
    """Scale rows to length 1, in their precision; zero rows stay zero."""
    norms_N1 = np.linalg.norm(vectors_ND, axis=-1, keepdims=True)
    return (vectors_ND / np.where(norms_N1 > 0, norms_N1, 1)).astype(vectors_ND.dtype, copy=False)


def on_cpu(given: object) -> object:
    """Return tensors as arrays, also inside lists: NumPy refuses those of a GPU, in bf16, or with gradients."""
    if isinstance(given, list | tuple):
        return [on_cpu(one) for one in given]
    return given.detach().float().cpu().numpy() if hasattr(given, "detach") else given
