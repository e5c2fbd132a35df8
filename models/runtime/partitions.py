"""Rows held in memory up to a budget and beyond it on disk, so that tables of any size are put in order and joined.

Design choices
- Ids are hashes, so their top bits cut a table into ranges of about equal size. Ranges are worked on one after the
  other, equal ranges of two tables are joined, and the results in sequence are in id order.
- What comes out does not depend on the budget, on the number of ranges or on how the rows came in.
- Nothing is left to the engine's own spilling: with `POLARS_OOC_MEMORY_BUDGET_MB=300` Polars 2.1 still took 660 MB to
  join two tables of 4 M rows (910 MB without), and the setting is the whole process's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Ranges = Callable[[int], pl.LazyFrame]
"""The rows of a table whose id is in the range of that number."""

MEMORY_BYTES: Final = 256 << 20
RANGE_ROWS: Final = 250_000  # with their text, and with all that is made of them on the way, some 200 MB
MOST_BITS: Final = 9  # beyond it ranges grow instead of files: 512 of each table that is under way


def bits_for(rows: int) -> int:
    """The number of bits that cuts so many rows into ranges of at most `RANGE_ROWS`, as far as there are bits."""
    return min(MOST_BITS, max(0, math.ceil(math.log2(max(1, rows) / RANGE_ROWS))))


def in_range(frame: pl.LazyFrame, number: int, bits: int, column: str = "sentence_id") -> pl.LazyFrame:
    """The rows whose id has `number` in its top `bits` bits; of a Parquet file that is sorted few groups are read."""
    if not bits:
        return frame
    low = number << (64 - bits)
    high = low + (1 << (64 - bits)) - 1
    return frame.filter(pl.col(column).is_between(pl.lit(low, dtype=pl.UInt64), pl.lit(high, dtype=pl.UInt64)))


def scratch_folder(folder: Path, name: str) -> Path:
    """A new folder inside a scratch folder, with which it is removed."""
    (folder / name).mkdir(parents=True)
    return folder / name


def equal_frames(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """The same rows in frames of exactly `rows` rows, the last one shorter."""
    waiting: list[pl.DataFrame] = []
    held = 0
    for frame in frames:
        waiting.append(frame)
        held += frame.height
        while held >= rows:
            merged = pl.concat(waiting)
            yield merged.head(rows)
            waiting = [merged.slice(rows)]
            held -= rows
    if held:
        yield pl.concat(waiting)


class Partitions:
    """A table that grows by frames and is read back range by range.

    Args:
        scratch: an empty folder for what does not fit; the caller removes it.
        schema: the columns.
        by: a UInt64 column whose top bits say the range.
        bits: how many bits; 2^bits ranges.
        memory_bytes: how much is held before it is written to `scratch`.
        tidy: sorts rows as they are wanted and drops those that are not; tidying pieces, then what they give, must
            come to the same as tidying all at once.
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
        self._held = 0
        self._spills = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Take rows that come after all rows taken before."""
        self._frames.append(frame)
        self._pieces = None
        self._held += int(frame.estimated_size())
        if self._held > self._budget:
            self._spill()

    def __len__(self) -> int:
        """How many ranges there are, empty ones counted."""
        return 1 << self._bits

    def __getitem__(self, number: int) -> pl.DataFrame:
        """The rows of a range."""
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} ranges, numbered from 0, and no range {number}")
        if not self._spills:
            return self._in_order()[number]
        if self._frames:
            self._spill()
        files = sorted((self._scratch / str(number)).glob("*.arrow"))
        # Mapped pages would count as resident memory, so the files are read, not mapped.
        return self._tidy(pl.concat([self._empty, *(pl.read_ipc(file.read_bytes()) for file in files)]))

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The ranges in order, empty ones too."""
        return (self[number] for number in range(len(self)))

    def _in_order(self) -> list[pl.DataFrame]:
        """What is held, cut into ranges; it is put in order once, however many of them are read."""
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
                folder.mkdir(exist_ok=True)
                piece.write_ipc(folder / f"{self._spills:06d}.arrow", compression="lz4")
        self._frames, self._pieces, self._held = [], None, 0
        self._spills += 1
