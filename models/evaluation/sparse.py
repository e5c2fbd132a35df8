"""Cosines and classifiers' features of sparse vectors, such as those of TF-IDF.

Shapes: N pairs or texts, V columns (words), D columns that are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array

from models.errors import EvaluationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def used_columns(table_NV: csr_array) -> csr_array:
    """Only the columns in which a row has something, at least one: a linear classifier's other weights would be 0."""
    used = np.unique(table_NV.indices[table_NV.data != 0])
    return csr_array(table_NV[:, used if len(used) else [0]])


def heaviest_columns(table_NV: csr_array, most: int = MOST_COLUMNS) -> NDArray[np.float32]:
    """The columns of largest summed weight, dense: (N, D), D at most `most`; 4,096 of 10,000 texts take 160 MB."""
    weights_V = np.abs(table_NV).sum(axis=0)
    kept = np.sort(np.argsort(-weights_V, kind="stable")[:most])
    return np.asarray(table_NV[:, kept].toarray(), dtype=np.float32)
