"""Figures of vectors: rankings of candidates, and the geometry of the space.

Shapes: Q queries, P texts to be found, N texts, D width, K places of a ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.preprocessing import normalize

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from models.evaluation.probe.problem import Features


_CELLS: Final = 1 << 24  # cosines held at a time


@dataclass(frozen=True)
class Ranking:
    """What one query has found.

    Attributes:
        scores: (K,) cosines, falling.
        right: (K,), whether each place holds an answer.
        answers: How many answers there are, found or not.
    """

    scores: NDArray[np.float32]
    right: NDArray[np.bool_]
    answers: int


def ranked(scores: ArrayLike, right: ArrayLike, answers: int) -> Ranking:
    """A ranking by falling score; of those that share one the first given stands first."""
    # As the published scripts hold them: two texts that are one keep one score whatever the product's rounding.
    s, r = np.asarray(scores, dtype=np.float32), np.asarray(right, dtype=bool)
    order = np.argsort(-s, kind="stable")
    return Ranking(s[order], r[order], answers)


def nearest(
    queries_QD: Features, pool_PD: Features, places: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Of each query, the numbers of the nearest texts of the pool, nearest first, and their cosines.

    A vector of zeros has cosine 0 with all. Of texts at one distance the first of the pool stands first.

    Args:
        queries_QD: Dense or sparse.
        pool_PD: As the queries.
        places: Most texts a query.
    """
    units_QD, units_PD = (normalize(vectors.astype(np.float64)) for vectors in (queries_QD, pool_PD))
    rows = max(1, _CELLS // units_PD.shape[0])
    for start in range(0, units_QD.shape[0], rows):
        product = units_QD[start : start + rows] @ units_PD.T
        cosines_QP = product if isinstance(product, np.ndarray) else product.toarray()
        for cosines_P in cosines_QP.astype(np.float32):
            last = np.partition(cosines_P, -places)[-places] if places < len(cosines_P) else -np.inf
            near = np.flatnonzero(cosines_P >= last)
            found = near[np.argsort(-cosines_P[near], kind="stable")][:places]
            yield found, cosines_P[found]


def average_precision(scores: ArrayLike, right: ArrayLike) -> float:
    """Σ (Rₙ − Rₙ₋₁) Pₙ over the scores as thresholds, in [0, 1]; 0 where nothing is right.

    Those that share a score are taken together, as scikit-learn does.
    """
    s, r = np.asarray(scores), np.asarray(right, dtype=np.float64)
    if not r.any():
        return 0.0
    order = np.argsort(-s, kind="stable")
    s, hits = s[order], np.cumsum(r[order])
    ends = np.append(np.flatnonzero(s[1:] != s[:-1]), len(s) - 1)
    return float((np.diff(hits[ends], prepend=0) * hits[ends] / (ends + 1)).sum() / hits[-1])


def found_precision(ranking: Ranking) -> float:
    """Mean precision at the answers that were found; the others have no part in the mean (AskUbuntu's)."""
    return _precision(ranking, int(ranking.right.sum()))


def trec_precision(ranking: Ranking) -> float:
    """Mean precision at all answers, 0 at those that were not found (trec_eval's `map` of one query)."""
    return _precision(ranking, ranking.answers)


def tied_precision(ranking: Ranking) -> float:
    """`average_precision` over the places of the ranking."""
    return average_precision(ranking.scores, ranking.right)


def precision_at(ranking: Ranking, places: int) -> float:
    """Share of answers among the first places."""
    first = ranking.right[:places]
    return float(first.mean())


def reciprocal_rank(ranking: Ranking) -> float:
    """One over the place of the first answer; 0 if none was found."""
    hits = np.flatnonzero(ranking.right)
    return 1.0 / (int(hits[0]) + 1) if len(hits) else 0.0


def gain(ranking: Ranking, places: int | None = None) -> float:
    """NDCG over the first places, or all: gain 1 an answer, discounted by log₂ of its place + 1, in [0, 1]."""
    right = ranking.right[:places]
    best = min(ranking.answers, places) if places is not None else ranking.answers
    discounts = 1.0 / np.log2(np.arange(2, max(len(right), best) + 2))
    return float((right * discounts[: len(right)]).sum() / discounts[:best].sum()) if best else 0.0


def _precision(ranking: Ranking, answers: int) -> float:
    hits = np.flatnonzero(ranking.right)
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).sum() / answers) if len(hits) else 0.0


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
