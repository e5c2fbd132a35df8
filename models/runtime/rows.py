"""Rows of matrices as unit vectors."""

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
