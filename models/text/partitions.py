"""Rows held in memory up to a budget and beyond it on disk, so that a corpus of any size is put in order.

Design choices
- A sentence id is a hash, so its top bits cut a corpus into equal parts that can be deduplicated one after the other,
  and the parts in sequence are the whole corpus in id order.
- What comes out does not depend on the budget, on the number of partitions or on how the rows came in.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import polars as pl

from models.text.dedup import deduplicate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITION_BITS: Final = 6  # 64 partitions: 10 M sentences make parts of about 20 MB
_SHIFT: Final = 64 - PARTITION_BITS


class Partitions:
    """A set of sentences that grows by frames and is read back once, unique and in id order.

    Args:
        scratch: an empty folder for what does not fit; the caller removes it.
        memory_bytes: how much is held before it is written to `scratch`.
    """

    def __init__(self, scratch: Path, memory_bytes: int) -> None:
        self._scratch = scratch
        self._budget = memory_bytes
        self._frames: list[pl.DataFrame] = []
        self._held = 0
        self._spills = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Take rows with `sentence_id` and `text` that come after all rows taken before."""
        self._frames.append(frame)
        self._held += int(frame.estimated_size())
        if self._held > self._budget:
            self._spill()

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Unique rows in id order, a partition at a time."""
        if not self._spills:
            if self._frames:
                yield deduplicate(pl.concat(self._frames))
            return
        self._spill()
        for partition in range(1 << PARTITION_BITS):
            files = sorted(self._scratch.glob(f"{partition:02d}-*.arrow"))
            if files:
                # Mapped pages would count as resident memory, so the files are read, not mapped.
                yield deduplicate(pl.concat([pl.read_ipc(file.read_bytes()) for file in files]))

    def _spill(self) -> None:
        if not self._frames:
            return
        ordered = deduplicate(pl.concat(self._frames))
        self._frames, self._held = [], 0
        starts = pl.Series([partition << _SHIFT for partition in range(1 << PARTITION_BITS)], dtype=pl.UInt64)
        bounds = [*ordered["sentence_id"].search_sorted(starts, side="left").to_list(), ordered.height]
        for partition, (start, end) in enumerate(pairwise(bounds)):
            if end > start:
                path = self._scratch / f"{partition:02d}-{self._spills:06d}.arrow"
                ordered.slice(start, end - start).write_ipc(path)
        self._spills += 1
