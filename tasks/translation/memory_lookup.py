"""What a translator's memory holds of some sentences, put into ranges of their ids.

A memory is in the order in which it was translated: by shard, and within a shard by length. To be joined with sentences
that are in the order of their ids, it is read once, part by part, and what the sentences need of it is set aside by id.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.runtime.partitions import Partitions

if TYPE_CHECKING:
    from pathlib import Path

    from models.runtime.partitions import Ranges
    from storage.artifacts.translation_memory import TranslationMemory

_ROWS: Final = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "part": pl.UInt64})
_SLOTS_A_SENTENCE: Final = 8
_MOST_SLOT_BITS: Final = 28  # 256 MiB


class MemoryLookup:
    """The translations of some sentences, as far as there are any.

    Args:
        memory: the translator's.
        scratch: an empty folder.
        bits: as `models.runtime.partitions.Partitions`.
        sentences: how many are asked for, roughly; a wrong number costs time only.
    """

    def __init__(self, memory: TranslationMemory, scratch: Path, bits: int, sentences: int) -> None:
        self._memory = memory
        self._table = Partitions(scratch, _ROWS, bits=bits, tidy=_each_once)
        self._seen: set[str] = set()
        # A memory may be a thousand times the corpus: a row is set aside only if its id falls into a slot that an id
        # of the corpus falls into. Ids are hashes, so their top bits do for a slot; a stranger costs space alone.
        slot_bits = min(_MOST_SLOT_BITS, 10 + math.ceil(math.log2(1 + _SLOTS_A_SENTENCE * sentences / 1024)))
        self._wanted = np.zeros(1 << slot_bits, dtype=np.bool_)
        self._shift = np.uint64(64 - slot_bits)

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._table)

    def __getitem__(self, number: int) -> pl.DataFrame:
        """The translations in a range: sentence_id (of the sentence translated), text (its translation)."""
        return self._table[number].drop("part")

    def ask_for(self, sentences: Ranges) -> None:
        """Say which sentences matter, before anything is read."""
        for number in range(len(self)):
            ids = sentences(number).select("sentence_id").collect().to_series().to_numpy()
            self._wanted[ids >> self._shift] = True

    def read(self) -> None:
        """Take what the memory holds, or what has come to it since the last call."""
        for ref, part in self._memory.whole_parts(self._seen):
            self._seen.add(ref.key)
            rows = part.select("sentence_id", "text", part=pl.lit(int(ref.key[:16], 16), dtype=pl.UInt64)).collect()
            is_wanted = self._wanted[rows["sentence_id"].to_numpy() >> self._shift]
            self._table.add(rows.filter(pl.Series(is_wanted)))

    def missing(self, number: int, sentences: pl.LazyFrame) -> pl.DataFrame:
        """Those sentences of a range that have no translation: sentence_id, text."""
        known = self._table[number].lazy()
        return sentences.select("sentence_id", "text").join(known, on="sentence_id", how="anti").collect()


def _each_once(rows: pl.DataFrame) -> pl.DataFrame:
    """Of a sentence's translations the first by the name of its part, so that every reader sees the same."""
    ordered = rows.sort("sentence_id", "part", maintain_order=True)
    return ordered.filter((pl.col("sentence_id") != pl.col("sentence_id").shift(1)).fill_null(value=True))
