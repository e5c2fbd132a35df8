"""Geometry of vectors: nearest texts of a pool, alignment, uniformity and spread of pairs.

Shapes: Q queries, P texts of the pool, N texts, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.preprocessing import normalize

from bsl.models.errors import EvaluationError
from bsl.models.runtime.rows import unit_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsl.models.evaluation.probe.problem import Features


_CELLS: Final = 1 << 24  # cosines in memory at a time


def nearest_of_others(
    queries_QD: Features,
    pool_PD: Features,
    own_Q: NDArray[np.int64],
    unit_P: NDArray[np.int64],
    *,
    count: int | None = None,
) -> NDArray[np.int64]:
    """Return the row of the pool nearest to each query by cosine, of another unit than the query's: (Q,).

    A zero vector has cosine 0 with every vector. The first of equally near rows is returned.

    Args:
        queries_QD: Vectors of the queries, dense or sparse.
        pool_PD: Vectors of the pool, in the same form.
        own_Q: Unit of each query.
        unit_P: Unit of each row of the pool; at least two different ones.
        count: Return the nearest row of each of this many units, or of all units if there are fewer, nearest first:
            (Q, count). The query's unit is last.
    """
    units_QD, units_PD = (normalize(vectors.astype(np.float64)) for vectors in (queries_QD, pool_PD))
    rows = max(1, _CELLS // units_PD.shape[0])
    by_unit_P = np.argsort(unit_P, kind="stable")
    starts_U = np.unique(unit_P[by_unit_P], return_index=True)[1]
    found = []
    for start in range(0, units_QD.shape[0], rows):
        product = units_QD[start : start + rows] @ units_PD.T
        cosines_QP = (product if isinstance(product, np.ndarray) else product.toarray()).astype(np.float32)
        cosines_QP[own_Q[start : start + rows, None] == unit_P] = -np.inf
        if count is None:
            found.append(cosines_QP.argmax(axis=1))
        else:
            found.append(by_unit_P[_of_units(cosines_QP[:, by_unit_P], starts_U, count)])
    return np.concatenate(found)


def _of_units(cosines_QP: NDArray[np.float32], starts_U: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the column with the largest cosine of each of the nearest units, whose columns begin at `starts_U`."""
    best_QU = np.maximum.reduceat(cosines_QP, starts_U, axis=1)
    # Not a partial sort: it orders equal cosines, such as those of a zero vector, differently on other processors.
    units_QK = np.argsort(-best_QU, axis=1, kind="stable")[:, :count]
    columns = cosines_QP.shape[1]
    sizes_U = np.diff(starts_U, append=columns)
    is_best_QP = cosines_QP == np.repeat(best_QU, sizes_U, axis=1)
    places_QP = np.where(is_best_QP, np.arange(columns, dtype=np.int32), np.int32(columns))
    return np.take_along_axis(np.minimum.reduceat(places_QP, starts_U, axis=1), units_QK, axis=1)


SPHERE_T = 2.0  # exponent scale of uniformity (Wang and Isola, 2020)


@dataclass(frozen=True)
class Geometry:
    """Geometry of a sample of positive pairs.

    Attributes:
        alignment: Mean squared distance of the two unit vectors of a pair, in [0, 4]; smaller is closer.
        uniformity: log mean exp(−2‖u − v‖²) over all pairs of different rows, ≤ 0; 0 if all vectors are equal.
        std: Mean standard deviation per dimension of the unit vectors times √D, in [0, 1]; 1 when spread evenly.
        effective_rank: exp of the entropy of the centred singular values (Roy and Vetterli, 2007), in [1, D].
    """

    alignment: float
    uniformity: float
    std: float
    effective_rank: float


def geometry(view_1_ND: NDArray[np.floating], view_2_ND: NDArray[np.floating]) -> Geometry:
    """Measure alignment, uniformity and spread of pairs (row i with row i); all but alignment on view 1."""
    if view_1_ND.shape != view_2_ND.shape or len(view_1_ND) < 2:
        raise EvaluationError(
            f"views: shapes {view_1_ND.shape} and {view_2_ND.shape}, expected two equal shapes of at least 2 rows. "
            "Pass both vectors of each pair."
        )
    u_ND, v_ND = unit_vectors(view_1_ND.astype(np.float64)), unit_vectors(view_2_ND.astype(np.float64))
    return Geometry(
        alignment=float(np.mean(np.sum((u_ND - v_ND) ** 2, axis=1))),
        uniformity=uniformity(u_ND),
        std=float(np.std(u_ND, axis=0).mean() * np.sqrt(u_ND.shape[1])),
        effective_rank=effective_rank(u_ND),
    )


def uniformity(u_ND: NDArray[np.float64]) -> float:
    """Return log mean exp(−t‖u − v‖²), t = 2, over pairs of different rows of unit vectors (Wang and Isola, 2020)."""
    squared_NN = np.maximum(2.0 - 2.0 * (u_ND @ u_ND.T), 0.0)
    above = squared_NN[np.triu_indices(len(u_ND), k=1)]
    return float(np.log(np.mean(np.exp(-SPHERE_T * above))))


def effective_rank(u_ND: NDArray[np.float64]) -> float:
    """Return exp of the Shannon entropy of the centred vectors' normalised singular values; 1 if all are equal."""
    centred_ND = u_ND - u_ND.mean(axis=0)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(centred_ND.T @ centred_ND), 0.0))
    if singular.sum() <= np.finfo(np.float64).tiny:
        return 1.0
    share = singular / singular.sum()
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share))))
