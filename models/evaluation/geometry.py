"""How embeddings lie on the unit sphere: the quantities that show a collapse which the loss hides.

Shapes: N sentences, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.errors import EvaluationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPHERE_T = 2.0  # exponent scale of uniformity (Wang and Isola, 2020)


@dataclass(frozen=True)
class Geometry:
    """Geometry of a sample of positive pairs.

    Attributes:
        alignment: Mean squared distance of the two unit vectors of a pair, in [0, 4]; smaller is closer.
        uniformity: log mean exp(−2‖u − v‖²) over all pairs of different rows, ≤ 0; 0 when all vectors are one point.
        std: Mean standard deviation per dimension of the unit vectors times √D, in [0, 1]; 1 when spread evenly.
        effective_rank: exp of the entropy of the centred singular values (Roy and Vetterli, 2007), in [1, D].
    """

    alignment: float
    uniformity: float
    std: float
    effective_rank: float


def geometry(view_1_ND: NDArray[np.floating], view_2_ND: NDArray[np.floating]) -> Geometry:
    """Measure a sample of pairs; row i of one view belongs to row i of the other. Spread is measured on view 1."""
    if view_1_ND.shape != view_2_ND.shape or len(view_1_ND) < 2:
        raise EvaluationError(
            f"views of shapes {view_1_ND.shape} and {view_2_ND.shape}, expected two equal shapes of 2 rows or more; "
            "pass the two vectors of each pair"
        )
    u_ND, v_ND = unit(view_1_ND), unit(view_2_ND)
    return Geometry(
        alignment=float(np.mean(np.sum((u_ND - v_ND) ** 2, axis=1))),
        uniformity=uniformity(u_ND),
        std=float(np.std(u_ND, axis=0).mean() * np.sqrt(u_ND.shape[1])),
        effective_rank=effective_rank(u_ND),
    )


def unit(vectors_ND: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rows scaled to length 1, in float64; zero rows stay zero."""
    wide = vectors_ND.astype(np.float64)
    norms_N1 = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(wide, norms_N1, out=np.zeros_like(wide), where=norms_N1 > 0)
    return scaled


def uniformity(u_ND: NDArray[np.float64]) -> float:
    """Log mean exp(−t‖u − v‖²), t = 2, over pairs of different rows of unit vectors (Wang and Isola, 2020)."""
    squared_NN = np.maximum(2.0 - 2.0 * (u_ND @ u_ND.T), 0.0)
    above = squared_NN[np.triu_indices(len(u_ND), k=1)]
    return float(np.log(np.mean(np.exp(-SPHERE_T * above))))


def effective_rank(u_ND: NDArray[np.float64]) -> float:
    """Exp of the Shannon entropy of the singular values, after removing the mean; 1 when nothing varies."""
    centred_ND = u_ND - u_ND.mean(axis=0)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(centred_ND.T @ centred_ND), 0.0))
    if singular.sum() <= np.finfo(np.float64).tiny:
        return 1.0
    share = singular / singular.sum()
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share))))
