"""Grouping accuracy: texts of a class are found near each other, by the nearest neighbour and the nearest centroid.

A row's outcome depends on other rows: its neighbour, and the examples, which all rows share. Draws of outcomes alone
vary too little: their 95 % intervals contained the accuracy of the population in 76 to 88 of 100 simulated sets, and
those of a difference of 0 excluded it in 10 to 16 (docs/research-log.md). So every draw of units is scored anew, with
neighbours and examples among the drawn rows. Then it is 91 to 95, and 3 to 5.

Shapes: N rows, D width, C classes, P draws of examples, K neighbours, R draws of units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from bsl.models.evaluation.geometry import nearest_of_others
from bsl.models.evaluation.significance.bootstrap import unit_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsl.models.evaluation.probe.problem import Features

EXAMPLES: Final = 5  # per class
DRAWS: Final = 20  # of examples
_NEAREST: Final = 32  # units near a row, one of which nearly every draw has
_CELLS: Final = 1 << 24  # cosines in memory at a time
_SCORED: Final = 500  # rows that a draw compares with its centroids; more would take minutes with many classes


def neighbour_accuracy(
    vectors_ND: Features, gold_N: NDArray[np.int64], unit_N: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return 1 for each row whose nearest row by cosine, of another unit, has the same class: (N,)."""
    right_N: NDArray[np.bool_] = gold_N[nearest_of_others(vectors_ND, vectors_ND, unit_N, unit_N)] == gold_N
    return right_N.astype(np.float64)


def centroid_accuracy(
    vectors_ND: Features, gold_N: NDArray[np.int64], unit_N: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the share of draws in which the centroid nearest to a row is that of its class: (N,), in [0, 1].

    A draw takes `EXAMPLES` rows of each class, or half of a smaller class. Draws in which a row, or another row of its
    unit, is an example do not count for that row; NaN if no draw counts.
    """
    return _Centroids(vectors_ND, gold_N, unit_N).of_all()


def grouping_draws(
    vectors_ND: Features, gold_N: NDArray[np.int64], unit_N: NDArray[np.int64], *, resamples: int, seed: int
) -> NDArray[np.float64]:
    """Return the grouping accuracy of draws of units, (R,): the mean of both accuracies, each computed anew.

    Rows of a draw have fewer other rows near them, so accuracies of draws are lower than those of all rows. Each draw's
    difference from the mean of the draws is added to the accuracy of all rows, and the sum is cut to [0, 1].

    A draw whose rows have no centroid accuracy, as with few units, counts by its neighbours; NaN for a draw of less
    than two units. Above `_SCORED` rows, only so many rows of a draw are compared with its centroids. Their mean
    change from `centroid_accuracy` is taken as that of all rows.

    Args:
        vectors_ND: Vectors, dense or sparse.
        gold_N: Class numbers.
        unit_N: Unit of each row, such as its writer.
        resamples: R.
        seed: Seed of the draws, which are those of `unit_means`.
    """
    near_NK = nearest_of_others(vectors_ND, vectors_ND, unit_N, unit_N, count=_NEAREST)
    same_NK, other_NK = gold_N[near_NK] == gold_N[:, None], unit_N[near_NK] != unit_N[:, None]
    centroids, rows_N = _Centroids(vectors_ND, gold_N, unit_N), np.arange(len(gold_N))
    central_N = centroids.of_all()
    near_R, central_R, even_R = np.empty(resamples), np.empty(resamples), np.ones(resamples, dtype=np.int64)
    for draw, weight_N in enumerate(unit_weights(unit_N, resamples=resamples, seed=seed)):
        has_N = weight_N > 0
        has_NK = has_N[near_NK] & other_NK
        right_N = same_NK[rows_N, has_NK.argmax(axis=1)].astype(np.float64)
        near_R[draw] = _mean(np.where(has_NK.any(axis=1), right_N, np.nan), weight_N)
        some = np.random.default_rng([seed, draw]).permutation(np.flatnonzero(has_N))[:_SCORED]
        change = centroids.accuracy(has_N, some) - central_N[some]
        central_R[draw] = _mean(central_N, weight_N) + _mean(change, weight_N[some])
    whole = np.nanmean([neighbour_accuracy(vectors_ND, gold_N, unit_N), central_N], axis=0).mean()
    near_R -= _mean(near_R, even_R)
    central_R -= _mean(central_R, even_R)
    moved_R: NDArray[np.float64] = whole + np.where(np.isnan(central_R), near_R, (near_R + central_R) / 2)
    return np.clip(moved_R, 0, 1)


def _mean(values: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    """Return the weighted mean of the values that are not NaN; NaN without any."""
    known = np.isfinite(values)
    total = weights[known].sum()
    return float(weights[known] @ values[known] / total) if total else np.nan


class _Centroids:
    """Centroids of examples of each class; which rows are examples depends on the rows that are drawn."""

    def __init__(self, vectors_ND: Features, gold_N: NDArray[np.int64], unit_N: NDArray[np.int64]) -> None:
        self._units_ND, self._gold_N = normalize(vectors_ND), np.unique(gold_N, return_inverse=True)[1]
        self._unit_N = np.unique(unit_N, return_inverse=True)[1]
        self._sizes_C = np.bincount(self._gold_N)
        generator = np.random.default_rng(0)
        shuffled_PN = np.stack([generator.permutation(len(gold_N)) for _ in range(DRAWS)])
        by_class_PN = np.argsort(self._gold_N[shuffled_PN], axis=1, kind="stable")
        self._order_PN = np.take_along_axis(shuffled_PN, by_class_PN, axis=1)  # the rows of class 0, then of class 1 …
        self._class_N = np.sort(self._gold_N)

    def of_all(self) -> NDArray[np.float64]:
        """Return `centroid_accuracy`, (N,)."""
        rows_N, cells = np.arange(len(self._gold_N)), len(self._gold_N) * DRAWS * len(self._sizes_C)
        parts = np.array_split(rows_N, 1 + cells // _CELLS)
        return np.concatenate([self.accuracy(np.ones(len(rows_N), dtype=bool), part) for part in parts])

    def accuracy(self, has_N: NDArray[np.bool_], rows_M: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return `centroid_accuracy` of some rows, (M,), with examples out of the rows that are drawn (`has_N`)."""
        draw, row, group = self._examples(has_N)
        classes = len(self._sizes_C)
        of_example = np.ones(len(row), self._units_ND.dtype), (draw * classes + group, row)
        centroids_XD = normalize(csr_array(of_example, (DRAWS * classes, len(has_N))) @ self._units_ND)
        cosines = self._units_ND[rows_M] @ centroids_XD.T
        cosines_MPC = (cosines if isinstance(cosines, np.ndarray) else cosines.toarray()).reshape(-1, DRAWS, classes)
        cosines_MPC[:, :, np.bincount(self._gold_N[has_N], minlength=classes) == 0] = -np.inf
        right_MP = cosines_MPC.argmax(axis=2) == self._gold_N[rows_M, None]
        used_PU = np.zeros((DRAWS, self._unit_N.max() + 1), dtype=bool)
        used_PU[draw, self._unit_N[row]] = True
        counts_MP = ~used_PU[:, self._unit_N[rows_M]].T
        counted_M = counts_MP.sum(axis=1)
        return np.where(counted_M > 0, (right_MP & counts_MP).sum(axis=1) / np.maximum(counted_M, 1), np.nan)

    def _examples(self, has_N: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return draw, row and class of all examples."""
        drawn_C = np.bincount(self._gold_N[has_N], minlength=len(self._sizes_C))
        most_C = np.where(drawn_C >= EXAMPLES, EXAMPLES, np.maximum(1, drawn_C // 2))
        has_PN = has_N[self._order_PN]
        before_C = np.cumsum(drawn_C) - drawn_C  # drawn rows of earlier classes
        rank_PN = has_PN.cumsum(axis=1) - before_C[self._class_N]
        draw, place = np.nonzero(has_PN & (rank_PN <= most_C[self._class_N]))
        return draw, self._order_PN[draw, place], self._class_N[place]
