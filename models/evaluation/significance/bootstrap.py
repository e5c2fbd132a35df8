"""Bootstrap distributions of correlations, means and average precision, exact and fast.

A resample is a count per pair, not a new list. The values are sorted once; ranks within a resample are cumulative
counts, so no resample is sorted. R resamples of n pairs cost R·n additions.

Shapes: R resamples (of one chunk), N pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from models.evaluation.correlation import checked_pair, pearson, spearman

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    Seed = int | np.random.SeedSequence

Metric = Literal["spearman", "pearson"]
LEVEL = 0.95
CHUNK_CELLS = 2_000_000  # R·N of one chunk: limits memory to some tens of MB


@dataclass(frozen=True)
class DrawnScore:
    """A score with its bootstrap distribution.

    Attributes:
        value: The score.
        n: Number of pairs, or queries.
        draws: Bootstrap distribution of the score; two systems have the same draws.
    """

    value: float
    n: int
    draws: NDArray[np.float64]

    @property
    def figures(self) -> tuple[float, int, float, float]:
        """Value, number, and both ends of the 95 % interval: the last fields of a `ScoreRow`."""
        return self.value, self.n, *percentile_interval(self.draws)


def spearman_resamples(x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: Seed = 0) -> NDArray[np.float64]:
    """Return Spearman's ρ of `resamples` draws of n pairs with replacement: (resamples,).

    A draw in which one side is constant gives NaN. Lists of equal length get the same draws for the same seed, so their
    scores are correlated: use different seeds for scores that are averaged.

    Raises:
        EvaluationError: As `models.evaluation.correlation.spearman`.
    """
    a, b = checked_pair(x, y)
    order = np.argsort(a, kind="stable")
    a, b = a[order], b[order]
    in_b = np.argsort(b, kind="stable")
    bounds_a, bounds_b = _tie_bounds(a), _tie_bounds(b[in_b])
    out = [
        _weighted_correlation(
            counts_RN,
            _ranks(counts_RN, bounds_a),
            _unsort(_ranks(counts_RN[:, in_b], bounds_b), in_b),
        )
        for counts_RN in _draws(len(a), resamples, seed)
    ]
    return np.concatenate(out)


def pearson_resamples(x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: Seed = 0) -> NDArray[np.float64]:
    """Return Pearson's r of the same draws as `spearman_resamples`: (resamples,); NaN where one side is constant."""
    a, b = checked_pair(x, y)
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    moments = np.stack([a, b, a * a, b * b, a * b], axis=1)
    out = []
    for counts_RN in _draws(len(a), resamples, seed):
        ma, mb, aa, bb, ab = (counts_RN.astype(np.float64) @ moments / len(a)).T
        out.append(_ratio(ab - ma * mb, (aa - ma * ma) * (bb - mb * mb)))
    return np.concatenate(out)


def mean_resamples(x: ArrayLike, *, resamples: int = 1000, seed: Seed = 0) -> NDArray[np.float64]:
    """Return the means of `resamples` draws of n values with replacement: (resamples,)."""
    values_N = np.asarray(x, dtype=np.float64)
    return np.concatenate(
        [counts_RN @ values_N / len(values_N) for counts_RN in _draws(len(values_N), resamples, seed)]
    )


def precision_resamples(
    scores: ArrayLike, right: ArrayLike, *, resamples: int = 1000, seed: Seed = 0
) -> NDArray[np.float64]:
    """Return the average precision (`models.evaluation.metrics`) of `resamples` draws: (resamples,).

    A draw without any positive pair gives NaN. Lists of equal length get the same draws for the same seed, so that two
    systems are compared on the same pairs.
    """
    s, r = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
    order = np.argsort(-s, kind="stable")
    s, r = s[order], r[order]
    ends = np.append(np.flatnonzero(s[1:] != s[:-1]), len(s) - 1)  # of groups of equal scores
    out = []
    for drawn_RN in _draws(len(s), resamples, seed):
        counts_RN = drawn_RN[:, order]
        seen_RE = np.cumsum(counts_RN, axis=1)[:, ends]
        right_RE = np.cumsum(counts_RN * r, axis=1)[:, ends]
        gained_RE = np.diff(right_RE, axis=1, prepend=0)
        sums = (gained_RE * right_RE / np.maximum(seen_RE, 1)).sum(axis=1)
        out.append(np.divide(sums, right_RE[:, -1], out=np.full(len(sums), np.nan), where=right_RE[:, -1] > 0))
    return np.concatenate(out)


FIGURE: dict[Metric, Callable[[NDArray[np.float64], NDArray[np.float64]], float]] = {
    "spearman": spearman,
    "pearson": pearson,
}
RESAMPLES: dict[Metric, Callable[..., NDArray[np.float64]]] = {
    "spearman": spearman_resamples,
    "pearson": pearson_resamples,
}


def percentile_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the central 95 % interval of a bootstrap distribution without NaN draws; (NaN, NaN) if all are NaN."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _draws(n: int, resamples: int, seed: Seed) -> Iterator[NDArray[np.int32]]:
    """Yield chunks of draws as counts (R, N); the draws depend on seed and n only, not on the chunk size."""
    generator = np.random.Generator(np.random.PCG64(seed))
    size = max(1, CHUNK_CELLS // n)
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        picks_RN = generator.integers(0, n, (rows, n), dtype=np.int64)
        picks_RN += np.arange(rows)[:, None] * n
        yield np.bincount(picks_RN.ravel(), minlength=rows * n).reshape(rows, n).astype(np.int32)


def _tie_bounds(ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the end (exclusive) of each sorted position's tie group."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.append(starts[1:], len(ordered))
    group = np.repeat(np.arange(len(starts)), ends - starts)
    return starts[group], ends[group]


def _ranks(counts_RN: NDArray[np.int32], bounds: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the mean rank of each sorted position within its draw, less the mean of all ranks, (n + 1) / 2."""
    below_RN1 = np.zeros((len(counts_RN), counts_RN.shape[1] + 1), dtype=np.int64)
    np.cumsum(counts_RN, axis=1, out=below_RN1[:, 1:])
    first, behind = bounds
    # ranks (below + 1) … (upto) average to (below + upto + 1) / 2; subtracting the mean cancels the "+ 1"
    ranks_RN: NDArray[np.float64] = (below_RN1[:, first] + below_RN1[:, behind] - counts_RN.shape[1]) * 0.5
    return ranks_RN


def _unsort(ranks_RN: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return ranks_RN[:, back]


def _weighted_correlation(
    counts_RN: NDArray[np.int32], a_RN: NDArray[np.float64], b_RN: NDArray[np.float64]
) -> NDArray[np.float64]:
    counts = counts_RN.astype(np.float64)
    weighted_RN = counts * a_RN
    ab = np.einsum("rn,rn->r", weighted_RN, b_RN)
    aa = np.einsum("rn,rn->r", weighted_RN, a_RN)
    bb = np.einsum("rn,rn,rn->r", counts, b_RN, b_RN)
    return _ratio(ab, aa * bb)


def _ratio(covariance: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    # A constant draw has variance 0 up to rounding; its correlation is undefined.
    real = variances > 1e-12
    out = np.full(len(covariance), np.nan)
    out[real] = np.clip(covariance[real] / np.sqrt(variances[real]), -1.0, 1.0)
    return out
