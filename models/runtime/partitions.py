"""Sort, shuffle and join tables of any size, with rows in memory up to a budget and on disk beyond it.

Design choices
- Ids are hashes, so their top bits cut a table into ranges of about equal size. Ranges are processed one after the
  other, equal ranges of two tables are joined, and the results in sequence are in id order.
- Rows are shuffled by sorting them by a hash of id and seed. It gives the same rows the same order in every version of
  a library and on every machine, also after other rows are added, and the sort can stream.
- The result does not depend on the budget, the number of ranges or the order of the input rows.
- Polars' own spilling is not used: with `POLARS_OOC_MEMORY_BUDGET_MB=300` Polars 2.1 still took 660 MB to join two
  tables of 4 M rows (910 MB without), and the setting applies to the whole process.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

Ranges = Callable[[int], pl.LazyFrame]
"""Function from the number of a range to the table's rows with ids in that range."""

MEMORY_BYTES: Final = 256 << 20
RANGE_ROWS: Final = 250_000  # about 200 MB with text and intermediate results
MOST_BITS: Final = 9  # at most 512 files per table; larger tables have larger ranges
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: the step of splitmix64's sequence


def bits_for(rows: int) -> int:
    """Return the number of id bits for ranges of at most `RANGE_ROWS` rows, up to `MOST_BITS`."""
    return min(MOST_BITS, max(0, math.ceil(math.log2(max(1, rows) / RANGE_ROWS))))


def in_range(frame: pl.LazyFrame, number: int, bits: int, column: str = "sentence_id") -> pl.LazyFrame:
    """Return the rows with `number` in the top `bits` bits of their id; a sorted Parquet file is read only in part."""
    if not bits:
        return frame
    low = number << (64 - bits)
    high = low + (1 << (64 - bits)) - 1
    return frame.filter(pl.col(column).is_between(pl.lit(low, dtype=pl.UInt64), pl.lit(high, dtype=pl.UInt64)))


def equal_frames(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Yield the same rows in frames of exactly `rows` rows; the last one may be shorter."""
    rest = pl.DataFrame()
    for frame in frames:
        rest = rest.vstack(frame) if rest.height else frame
        while rest.height >= rows:
            yield rest.head(rows)
            rest = rest.slice(rows)
    if rest.height:
        yield rest


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


class Partitions:
    """A table that is written frame by frame and read range by range.

    Args:
        scratch: An empty or absent folder for rows beyond the memory budget; the caller removes it.
        schema: Columns of the table.
        by: A UInt64 column whose top bits are the number of the range.
        bits: Number of these bits; there are 2^bits ranges.
        memory_bytes: Memory budget, beyond which rows are written to `scratch`.
        tidy: Sorts rows, and may drop some; applying it to parts and then to the joined results must equal applying it
            to all rows at once.
    """

    def __init__(
        self,
        scratch: Path,
        schema: pl.Schema,
        by: str = "sentence_id",
        *,
        bits: int,
        memory_bytes: int = MEMORY_BYTES,
        tidy: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    ) -> None:
        self._scratch = scratch
        self._empty = pl.DataFrame(schema=schema)
        self._by = by
        self._bits = bits
        self._budget = memory_bytes
        self._tidy = tidy or (lambda frame: frame.sort(by))
        self._frames: list[pl.DataFrame] = []
        self._pieces: list[pl.DataFrame] | None = None
        self._bytes = 0
        self._spills = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Append rows after all rows added before."""
        self._frames.append(frame)
        self._pieces = None
        self._bytes += int(frame.estimated_size())
        if self._bytes > self._budget:
            self._spill()

    def __len__(self) -> int:
        """Return the number of ranges, empty ones included."""
        return 1 << self._bits

    def __getitem__(self, number: int) -> pl.DataFrame:
        """Return the rows of a range."""
        if not 0 <= number < len(self):
            raise IndexError(f"range {number}, expected 0 to {len(self) - 1}")
        if not self._spills:
            return self._in_order()[number]
        if self._frames:
            self._spill()
        files = sorted((self._scratch / str(number)).glob("*.arrow"))
        # Mapped pages would count as resident memory, so the files are read, not mapped.
        return self._tidy(pl.concat([self._empty, *(pl.read_ipc(file.read_bytes()) for file in files)]))

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of all ranges in order, empty ones included."""
        return (self[number] for number in range(len(self)))

    def _in_order(self) -> list[pl.DataFrame]:
        """Return the rows in memory, cut into ranges; they are sorted once and then cached."""
        if self._pieces is None:
            ordered = self._tidy(pl.concat([self._empty, *self._frames]))
            starts = pl.Series([number << (64 - self._bits) for number in range(len(self))], dtype=pl.UInt64)
            bounds = [*ordered[self._by].search_sorted(starts, side="left").to_list(), ordered.height]
            self._frames = [ordered]
            self._pieces = [ordered.slice(start, end - start) for start, end in pairwise(bounds)]
        return self._pieces

    def _spill(self) -> None:
        for number, piece in enumerate(self._in_order()):
            if piece.height:
                folder = self._scratch / str(number)
                folder.mkdir(parents=True, exist_ok=True)
                piece.write_ipc(folder / f"{self._spills:06d}.arrow", compression="lz4")
        self._frames, self._pieces, self._bytes = [], None, 0
        self._spills += 1
