"""Seeded order without a generator: a number of each row's own, mixed with the seed.

A shuffle by `Generator.permutation` changes completely when one row is added, and with the library's version. A mix
of the row's id and the seed does not: the same rows fall into the same order for ever, wherever they are computed, and
the sort can stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: the step of splitmix64's sequence


def mix(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """The output function of splitmix64 (Steele, Lea, Flood 2014) on `numbers` moved on by `seed + 1` steps.

    A bijection for each seed: distinct numbers stay distinct.
    """
    z = numbers + np.uint64(_GOLDEN * (seed + 1) % 2**64)  # in Python: NumPy warns when a scalar product wraps
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def scattered(ids: pl.Expr, seed: int) -> pl.Expr:
    """`mix` of a column of ids, as UInt64; sort by it for a shuffle that the seed decides."""
    return ids.map_batches(
        lambda column: pl.Series(mix(column.to_numpy(), seed)), return_dtype=pl.UInt64, is_elementwise=True
    )
