"""Cluster bootstrap of means: all questions of a unit, a document or a run of one, are drawn together.

Shapes: V kinds of value, N questions, K units, R draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unit_means(
    values_VN: NDArray[np.float64], unit_N: NDArray[np.int64], *, resamples: int, seed: int
) -> NDArray[np.float64]:
    """Return means over draws of units, (R, V); NaN for a draw without any unit.

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
    for draw in range(resamples):
        # One generator per draw: unit k has the same weight for any number of units, since the Poisson bootstrap draws
        # weights independently.
        generator = np.random.Generator(np.random.PCG64([seed, draw]))
        weights_K = generator.poisson(1.0, int(names[-1]) + 1)[names]
        if total := weights_K @ sizes_K:
            out[draw] = (weights_K @ sums_KV) / total
    return out
