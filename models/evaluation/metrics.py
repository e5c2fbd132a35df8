"""Metrics of vectors: retrieval rankings (average precision, MRR, NDCG), clusters, alignment and uniformity.

Shapes: Q queries, P texts of the pool, N texts, D width, K ranks of a ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from models.evaluation.probe.problem import Features


_CELLS: Final = 1 << 24  # cosines in memory at a time


@dataclass(frozen=True)
class Ranking:
    """Ranked candidates of one query.

    Attributes:
        scores: (K,) cosines, descending.
        right: (K,), whether each candidate is a correct answer.
        answers: Number of correct answers, ranked or not.
    """

    scores: NDArray[np.float32]
    right: NDArray[np.bool_]
    answers: int


def ranked(scores: ArrayLike, right: ArrayLike, answers: int) -> Ranking:
    """Rank candidates by descending score; ties keep the given order."""
    # float32 as in the published scripts: equal texts get equal scores in spite of rounding.
    s, r = np.asarray(scores, dtype=np.float32), np.asarray(right, dtype=bool)
    order = np.argsort(-s, kind="stable")
    return Ranking(s[order], r[order], answers)


def nearest(queries_QD: Features, pool_PD: Features, k: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Yield the row numbers of the nearest texts of a pool, nearest first, and their cosines, for each query.

    A zero vector has cosine 0 with every vector. Ties keep the order of the pool.

    Args:
        queries_QD: Vectors of the queries, dense or sparse.
        pool_PD: Vectors of the pool, in the same form.
        k: Maximal number of texts per query.
    """
    units_QD, units_PD = (normalize(vectors.astype(np.float64)) for vectors in (queries_QD, pool_PD))
    rows = max(1, _CELLS // units_PD.shape[0])
    for start in range(0, units_QD.shape[0], rows):
        product = units_QD[start : start + rows] @ units_PD.T
        cosines_QP = product if isinstance(product, np.ndarray) else product.toarray()
        for cosines_P in cosines_QP.astype(np.float32):
            last = np.partition(cosines_P, -k)[-k] if k < len(cosines_P) else -np.inf
            near = np.flatnonzero(cosines_P >= last)
            found = near[np.argsort(-cosines_P[near], kind="stable")][:k]
            yield found, cosines_P[found]


def average_precision(scores: ArrayLike, right: ArrayLike) -> float:
    """Return the average precision Σ (Rₙ − Rₙ₋₁) Pₙ over the scores as thresholds, in [0, 1]; 0 without any positive.

    Equal scores are one threshold, as in scikit-learn.
    """
    s, r = np.asarray(scores), np.asarray(right, dtype=np.float64)
    if not r.any():
        return 0.0
    order = np.argsort(-s, kind="stable")
    s, hits = s[order], np.cumsum(r[order])
    ends = np.append(np.flatnonzero(s[1:] != s[:-1]), len(s) - 1)
    return float((np.diff(hits[ends], prepend=0) * hits[ends] / (ends + 1)).sum() / hits[-1])


def found_precision(ranking: Ranking) -> float:
    """Return the mean precision at the ranked answers; unranked answers are ignored (AskUbuntu)."""
    return _precision(ranking, int(ranking.right.sum()))


def trec_precision(ranking: Ranking) -> float:
    """Return the mean precision at all answers, 0 at unranked ones (trec_eval's `map` of one query)."""
    return _precision(ranking, ranking.answers)


def tied_precision(ranking: Ranking) -> float:
    """Return the `average_precision` of the ranked candidates."""
    return average_precision(ranking.scores, ranking.right)


def precision_at(ranking: Ranking, k: int) -> float:
    """Return the precision at rank `k`, or over the whole ranking if it is shorter."""
    first = ranking.right[:k]
    return float(first.mean())


def reciprocal_rank(ranking: Ranking) -> float:
    """Return 1 / rank of the first answer; 0 if no answer is ranked."""
    hits = np.flatnonzero(ranking.right)
    return 1.0 / (int(hits[0]) + 1) if len(hits) else 0.0


def gain(ranking: Ranking, k: int | None = None) -> float:
    """Return the NDCG of the first `k` ranks, or of all, in [0, 1]: gain 1 per answer, discount log₂(rank + 1)."""
    right = ranking.right[:k]
    best = min(ranking.answers, k) if k is not None else ranking.answers
    discounts = 1.0 / np.log2(np.arange(2, max(len(right), best) + 2))
    return float((right * discounts[: len(right)]).sum() / discounts[:best].sum()) if best else 0.0


def _precision(ranking: Ranking, answers: int) -> float:
    hits = np.flatnonzero(ranking.right)
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).sum() / answers) if len(hits) else 0.0


_BATCH: Final = 500  # texts of a step of k-means


def v_measure(vectors_ND: Features, labels: Sequence[str], seed: int) -> float:
    """Return the V-measure of k-means clusters against labels, in [0, 1]; one cluster per label.

    The V-measure is the harmonic mean of homogeneity and completeness. Mini-batch k-means, batches of 500, one
    k-means++ initialisation (MTEB's ClusteringEvaluator). Deviation: the initialisation is seeded; MTEB's is not.

    Raises:
        EvaluationError: There are fewer than two labels.
    """
    from sklearn.cluster import MiniBatchKMeans  # slow to import
    from sklearn.metrics import v_measure_score

    groups = len(set(labels))
    if groups < 2:
        raise EvaluationError(f"{len(labels)} texts with {groups} label, expected at least two labels. Remove the set.")
    if isinstance(vectors_ND, csr_array):
        indices = (
            vectors_ND.indices.astype(np.int32),
            vectors_ND.indptr.astype(np.int32),
        )  # k-means accepts only int32
        vectors_ND = csr_array((vectors_ND.data, *indices), shape=vectors_ND.shape)
    found = MiniBatchKMeans(groups, batch_size=_BATCH, n_init=1, random_state=seed).fit(vectors_ND).labels_
    return float(v_measure_score(labels, found))


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
    u_ND, v_ND = unit(view_1_ND), unit(view_2_ND)
    return Geometry(
        alignment=float(np.mean(np.sum((u_ND - v_ND) ** 2, axis=1))),
        uniformity=uniformity(u_ND),
        std=float(np.std(u_ND, axis=0).mean() * np.sqrt(u_ND.shape[1])),
        effective_rank=effective_rank(u_ND),
    )


def unit(vectors_ND: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale rows to length 1, in float64; zero rows stay zero."""
    wide = vectors_ND.astype(np.float64)
    norms_N1 = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(wide, norms_N1, out=np.zeros_like(wide), where=norms_N1 > 0)
    return scaled


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
