"""Bootstrap distributions of correlations, exact and fast, and of means over units.

A resample is a count per pair, not a new list. The values are sorted once; ranks within a resample are cumulative
counts, so no resample is sorted. R resamples of n pairs cost R·n additions.

Shapes: R resamples (of one chunk), N pairs or questions, V kinds of value, K units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsl.models.evaluation.correlation import checked_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    Seed = int | np.random.SeedSequence

LEVEL = 0.95
CHUNK_CELLS = 2_000_000  # R·N of one chunk: limits memory to some tens of MB


def spearman_resamples(
    x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: Seed = 0, unit_N: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return Spearman's ρ of `resamples` draws of n pairs with replacement: (resamples,).

    With `unit_N`, the number from 0 of each pair's unit, such as its writer, units are drawn with all their pairs
    (cluster bootstrap).

    A draw in which one side is constant gives NaN. Lists of equal length get the same draws for the same seed, so their
    scores are correlated: use different seeds for scores that are averaged.

    Raises:
        EvaluationError: As `bsl.models.evaluation.correlation.spearman`.
    """
    a, b = checked_pair(x, y)
    order = np.argsort(a, kind="stable")
    a, b = a[order], b[order]
    ordered_unit_N = None if unit_N is None else unit_N[order]
    in_b = np.argsort(b, kind="stable")
    bounds_a, bounds_b = _tie_bounds(a), _tie_bounds(b[in_b])
    out = [
        _weighted_correlation(
            counts_RN,
            _ranks(counts_RN, bounds_a),
            _unsort(_ranks(counts_RN[:, in_b], bounds_b), in_b),
        )
        for counts_RN in _draws(len(a), resamples, seed, ordered_unit_N)
    ]
    return np.concatenate(out)


def pearson_resamples(
    x: ArrayLike, y: ArrayLike, *, resamples: int = 1000, seed: Seed = 0, unit_N: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return Pearson's r of draws as of `spearman_resamples`: (resamples,); NaN where one side is constant."""
    a, b = checked_pair(x, y)
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    moments = np.stack([a, b, a * a, b * b, a * b], axis=1)
    out = []
    for counts_RN in _draws(len(a), resamples, seed, unit_N):
        ma, mb, aa, bb, ab = (counts_RN.astype(np.float64) @ moments / counts_RN.sum(axis=1)[:, None]).T
        out.append(_ratio(ab - ma * mb, (aa - ma * ma) * (bb - mb * mb)))
    return np.concatenate(out)


def unit_means(
    values_VN: NDArray[np.float64], unit_N: NDArray[np.int64], *, resamples: int, seed: int
) -> NDArray[np.float64]:
    """Return means over draws of units (cluster bootstrap), (R, V); NaN for a draw without any unit.

    All questions of a unit, a document or a run of one, are drawn together.

    A unit's weight in a draw depends only on the draw, the unit's number and the seed. So several kinds of questions
    about one text have the same draws, even if some units have no questions of a kind. Their answers are correlated,
    and the interval of their mean is as wide as it should be.

    Args:
        values_VN: Values of each question.
        unit_N: Unit number of each question, from 0.
        resamples: R.
        seed: Seed of the draws, ≥ 0.
    """
    names, own_N = np.unique(unit_N, return_inverse=True)
    sums_KV = np.stack([np.bincount(own_N, values_N) for values_N in values_VN], axis=1)
    sizes_K = np.bincount(own_N).astype(np.float64)
    out = np.full((resamples, len(values_VN)), np.nan)
    for draw, weights_K in enumerate(unit_weights(names, resamples=resamples, seed=seed)):
        if total := weights_K @ sizes_K:
            out[draw] = (weights_K @ sums_KV) / total
    return out


def unit_weights(unit_N: NDArray[np.int64], *, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield how often each row's unit is drawn, (N,), for each of R draws of the Poisson bootstrap."""
    for draw in range(resamples):
        # One generator per draw: unit k has the same weight for any number of units, since the Poisson bootstrap draws
        # weights independently.
        generator = np.random.Generator(np.random.PCG64([seed, draw]))
        yield generator.poisson(1.0, int(unit_N.max()) + 1)[unit_N]


def percentile_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the central 95 % interval of a bootstrap distribution without NaN draws; (NaN, NaN) if all are NaN."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _draws(n: int, resamples: int, seed: Seed, unit_N: NDArray[np.int64] | None = None) -> Iterator[NDArray[np.int32]]:
    """Yield chunks of draws as counts (R, N); the draws depend on seed, n and units, not on the chunk size."""
    generator = np.random.Generator(np.random.PCG64(seed))
    size = max(1, CHUNK_CELLS // n)
    drawn = n if unit_N is None else int(unit_N.max()) + 1
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        picks_RK = generator.integers(0, drawn, (rows, drawn), dtype=np.int64)
        picks_RK += np.arange(rows)[:, None] * drawn
        counts_RK = np.bincount(picks_RK.ravel(), minlength=rows * drawn).reshape(rows, drawn).astype(np.int32)
        yield counts_RK if unit_N is None else counts_RK[:, unit_N]


def _tie_bounds(ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the end (exclusive) of each sorted position's tie group."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.append(starts[1:], len(ordered))
    group = np.repeat(np.arange(len(starts)), ends - starts)
    return starts[group], ends[group]


def _ranks(counts_RN: NDArray[np.int32], bounds: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the mean rank of each sorted position within its draw, less the mean of all ranks, (n + 1) / 2.

    n is the number of pairs of the draw, which differs between draws of units.
    """
    below_RN1 = np.zeros((len(counts_RN), counts_RN.shape[1] + 1), dtype=np.int64)
    np.cumsum(counts_RN, axis=1, out=below_RN1[:, 1:])
    first, behind = bounds
    # ranks (below + 1) … (upto) average to (below + upto + 1) / 2; subtracting the mean cancels the "+ 1"
    ranks_RN: NDArray[np.float64] = (below_RN1[:, first] + below_RN1[:, behind] - below_RN1[:, -1:]) * 0.5
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
