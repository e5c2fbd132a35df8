"""Shuffle rows without a generator: sort them by a hash of id and seed.

A shuffle by `Generator.permutation` changes completely when one row is added, and may change with the library's
version. A hash of id and seed gives the same rows the same order in every version and on every machine, and the sort
can stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: the step of splitmix64's sequence


def mix(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Apply the output function of splitmix64 (Steele, Lea, Flood 2014) to `numbers` advanced by `seed + 1` steps.

    It is a bijection for each seed, so distinct numbers stay distinct.
    """
    z = numbers + np.uint64(_GOLDEN * (seed + 1) % 2**64)  # in Python: NumPy warns when a scalar product wraps
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def scattered(ids: pl.Expr, seed: int) -> pl.Expr:
    """Return `mix` of a column of ids, as UInt64; sorting by it is a seeded shuffle."""
    return ids.map_batches(
        lambda column: pl.Series(mix(column.to_numpy(), seed)), return_dtype=pl.UInt64, is_elementwise=True
    )
