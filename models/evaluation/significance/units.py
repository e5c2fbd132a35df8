"""Means over draws of units: documents, or runs of one, whose questions are drawn together.

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
    """Means over draws of units, (R, V); NaN where a draw has none of the units.

    What a draw takes of a unit depends on its number and the seed alone. Several kinds of question about one text are
    so drawn alike, though one kind asks nothing of a unit that another asks of: what their answers have in common
    widens the interval of their mean as it should.

    Args:
        values_VN: of each question.
        unit_N: each question's unit, from 0.
        resamples: R.
        seed: of the draws, from 0.
    """
    names, own_N = np.unique(unit_N, return_inverse=True)
    sums_KV = np.stack([np.bincount(own_N, values_N) for values_N in values_VN], axis=1)
    sizes_K = np.bincount(own_N).astype(np.float64)
    out = np.full((resamples, len(values_VN)), np.nan)
    for draw in range(resamples):
        # A generator a draw, so that fewer units get the first weights of more. Poisson weights are a bootstrap in
        # which one unit's weight says nothing of another's.
        generator = np.random.Generator(np.random.PCG64([seed, draw]))
        weights_K = generator.poisson(1.0, int(names[-1]) + 1)[names]
        if total := weights_K @ sizes_K:
            out[draw] = (weights_K @ sums_KV) / total
    return out
