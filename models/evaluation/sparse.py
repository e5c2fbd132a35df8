"""Cosines and classifier's features of sparse vectors, such as those of TF-IDF.

Shapes: N pairs or texts, V columns (words), D columns that are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import vstack

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

MOST_COLUMNS: Final = 4096


def sparse_cosines(first_NV: csr_array, second_NV: csr_array) -> NDArray[np.float64]:
    """Cosine of row i of one matrix with row i of the other: (N,), in [-1, 1]; a zero vector has cosine 0 with all.

    Raises:
        EvaluationError: shapes differ, or a value is not finite.
    """
    if first_NV.shape != second_NV.shape:
        raise EvaluationError(
            f"embeddings of shapes {first_NV.shape} and {second_NV.shape}, expected two equal (n, d); embed both sides "
            "of every pair with one system"
        )
    if not (np.isfinite(first_NV.data).all() and np.isfinite(second_NV.data).all()):
        raise EvaluationError(
            "a sparse vector holds a value that is not finite, expected numbers; look at the system that made it"
        )
    dots, squares_1, squares_2 = (
        np.asarray(one.multiply(two).sum(axis=1), dtype=np.float64).ravel()
        for one, two in ((first_NV, second_NV), (first_NV, first_NV), (second_NV, second_NV))
    )
    norms = np.sqrt(squares_1 * squares_2)
    # Vectors of length 1 up to rounding, as TF-IDF's, are not divided: their cosine is the product that peers take.
    norms[np.isclose(norms, 1.0, rtol=0, atol=1e-9)] = 1.0
    cosines: NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return np.clip(cosines, -1.0, 1.0)


def dense_features(parts_NV: Sequence[csr_array], most: int = MOST_COLUMNS) -> list[NDArray[np.float32]]:
    """The columns of largest summed weight over all parts, dense: (N, D) for each part, D at most `most`.

    A linear classifier over a whole vocabulary would hold as many weights for words that the task never shows; columns
    that no text of the task has are left out, and the lightest ones where too many are left.

    Args:
        parts_NV: texts of one task, such as those of its splits.
        most: columns kept; 4,096 unless given, so that 10,000 texts take 160 MB.
    """
    weights_V = np.abs(vstack(parts_NV)).sum(axis=0)
    heaviest = np.argsort(-weights_V, kind="stable")[: min(most, max(1, np.count_nonzero(weights_V)))]
    kept = np.sort(heaviest)
    return [np.asarray(part[:, kept].toarray(), dtype=np.float32) for part in parts_NV]
