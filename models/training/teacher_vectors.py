"""A teacher's sentence vectors in a memory-mapped table, for objectives that learn from them.

Shapes: N sentences, B sentences of a batch, D width.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from models.errors import TrainingError
from storage.filesystem.atomic import whole

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

CHUNK = 50_000  # sentences in memory at once while the table is written


@dataclass(frozen=True)
class TeacherVectors:
    """A table of vectors, which may be memory-mapped.

    Attributes:
        ids: (N,) uint64, sentence ids in ascending order.
        vectors: (N, D) float32, one row per id.
    """

    ids: NDArray[np.uint64]
    vectors: NDArray[np.float32]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ids and vectors."""
        digest = hashlib.sha256(self.ids.tobytes())
        for start in range(0, len(self.vectors), CHUNK):
            digest.update(self.vectors[start : start + CHUNK].tobytes())
        return digest.hexdigest()

    def check(self, ids: NDArray[np.uint64], first_row: int) -> None:
        """Refuse pairs whose sentence has no vector.

        Args:
            ids: Sentence ids of some pairs.
            first_row: Row number of the first pair, for the message.

        Raises:
            TrainingError: A sentence has no vector; the message names the first such pair.
        """
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        if missing := np.flatnonzero(self.ids[rows] != ids).tolist():
            raise TrainingError(
                f"the teacher has no vector for sentence_id {ids[missing[0]]} of pair {first_row + missing[0]}. Embed "
                "the corpus of the pairs with the teacher."
            )

    def vectors_of(self, ids: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the vectors (B, D) of sentences; all of them must be in the table."""
        return np.asarray(self.vectors[np.searchsorted(self.ids, ids)])


def open_teacher(folder: Path, name: str, rows: pl.LazyFrame) -> TeacherVectors:
    """Open a teacher's memory-mapped vectors, and write their files into `folder` first if they do not exist.

    Args:
        folder: Created if needed.
        name: Part of the file names; other vectors need another name.
        rows: `sentence_id` (UInt64, ascending) and `embedding` (an array of D float32).

    Raises:
        TrainingError: The ids are not in ascending order, or one occurs twice.
    """
    path = folder / f"teacher-{name}"
    if not path.is_dir():
        with whole(path, first_stays=True) as unfinished:
            unfinished.mkdir()
            _write(unfinished, rows)
    ids, vectors = (np.load(path / f"{part}.npy", mmap_mode="r") for part in ("ids", "vectors"))
    return TeacherVectors(ids, vectors)


def _write(folder: Path, rows: pl.LazyFrame) -> None:
    ids = rows.select("sentence_id").collect()["sentence_id"].to_numpy()
    if not (ids[1:] > ids[:-1]).all():
        raise TrainingError("the teacher's sentence ids are not sorted, or contain duplicates. Embed the corpus again.")
    np.save(folder / "ids.npy", ids)
    width = rows.collect_schema()["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
    table = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(len(ids), width))
    done = 0
    for chunk in rows.select("embedding").collect_batches(chunk_size=CHUNK, maintain_order=True):
        table[done : done + len(chunk)] = chunk["embedding"].to_numpy()
        done += len(chunk)
    table.flush()
