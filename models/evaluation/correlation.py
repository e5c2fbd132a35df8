"""Spearman and Pearson correlation of cosine scores with gold scores.

Not scipy's functions: ties, constants and missing values are defined here, and the bootstrap shares the ranking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bsl.models.errors import EvaluationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array


DECIMALS: Final = 12
"""Decimals of cosines: without rounding, some pairs of equal sentences would have 1 and others 1 − 2⁻⁵³, so that their
order, and Spearman's correlation, would be chance."""


def cosine_scores(vectors_1: NDArray[np.floating], vectors_2: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the cosine of row i of one matrix with row i of the other: (n,), in [-1, 1], with `DECIMALS`.

    A zero vector has cosine 0 with every vector (SentEval's rule), so an empty TF-IDF row is no error.

    Raises:
        EvaluationError: Shapes differ, or a vector contains NaN or infinity (the message names the row).
    """
    _check_shapes(vectors_1, vectors_2)
    a, b = vectors_1.astype(np.float64), vectors_2.astype(np.float64)
    for side, vectors in (("first", a), ("second", b)):
        _check_rows(np.asarray(np.isfinite(vectors).all(axis=1)), f"the {side} vector of the pair")
    dots = np.einsum("nd,nd->n", a, b)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines: NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return np.clip(cosines.round(DECIMALS), -1.0, 1.0)


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's ρ in [-1, 1]: Pearson of the ranks, where tied values get their mean rank.

    Raises:
        EvaluationError: As `pearson`.
    """
    a, b = checked_pair(x, y)
    return _pearson(average_ranks(a), average_ranks(b))


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return Pearson's r in [-1, 1].

    Raises:
        EvaluationError: Unequal lengths, fewer than two pairs, a value that is not finite, or a constant side.
    """
    return _pearson(*checked_pair(x, y))


def average_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1, where tied values get their mean rank: (n,)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[inverse]


def checked_pair(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two score lists as float64; raise an error that names the problem and the row."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise EvaluationError(
            f"scores: shapes {a.shape} and {b.shape}, expected two lists of equal length. Check the join."
        )
    if len(a) < 2:
        raise EvaluationError(f"{len(a)} scored pairs, expected at least 2 for a correlation. Check the subset.")
    for side, values in (("first", a), ("second", b)):
        _check_rows(np.isfinite(values), f"the {side} score")
        if values.min() == values.max():
            raise EvaluationError(
                f"all {len(a)} values of the {side} scores are {values[0]} (rows 0 to {len(a) - 1}), expected "
                "different values. Check that the encoder did not collapse and that the column is right."
            )
    return a, b


def _check_shapes(first: NDArray[np.floating] | csr_array, second: NDArray[np.floating] | csr_array) -> None:
    if len(first.shape) != 2 or first.shape != second.shape:
        raise EvaluationError(
            f"embeddings: shapes {first.shape} and {second.shape}, expected two equal shapes (n, d). Embed both sides "
            "of every pair with the same encoder."
        )


def _check_rows(good: NDArray[np.bool_], what: str) -> None:
    bad = np.flatnonzero(~good)
    if len(bad):
        raise EvaluationError(
            f"{what} in row {bad[0]} is not finite ({len(bad)} of {len(good)} rows). Drop pairs without a "
            "score, or check the encoder."
        )


def _pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    # Scaled first, since squares of very small or very large scores would underflow or overflow float64.
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def sparse_cosines(first_NV: csr_array, second_NV: csr_array) -> NDArray[np.float64]:
    """Return the cosine of row i of one sparse matrix with row i of the other: (N,), in [-1, 1], with `DECIMALS`.

    A zero vector has cosine 0 with every vector.

    Raises:
        EvaluationError: Shapes differ, or a value is not finite.
    """
    _check_shapes(first_NV, second_NV)
    if not (np.isfinite(first_NV.data).all() and np.isfinite(second_NV.data).all()):
        raise EvaluationError(
            "a sparse vector contains a value that is not finite, expected only numbers. Check the system that "
            "computed it."
        )
    dots, squares_1, squares_2 = (
        np.asarray(one.multiply(two).sum(axis=1), dtype=np.float64).ravel()
        for one, two in ((first_NV, second_NV), (first_NV, first_NV), (second_NV, second_NV))
    )
    norms = np.sqrt(squares_1 * squares_2)
    # Vectors of length 1 up to rounding (TF-IDF) are not divided, so that cosines equal other programs' dot products.
    norms[np.isclose(norms, 1.0, rtol=0, atol=1e-9)] = 1.0
    cosines: NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return np.clip(cosines.round(DECIMALS), -1.0, 1.0)
