"""Cut sentences into shards, each of which one call translates or embeds."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import polars as pl

from bsl.models.runtime.partitions import Partitions, equal_frames
from bsl.storage.record import NotInKey, Record

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROWS: Final = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "slot": pl.UInt64})
_SLOT_BITS: Final = 8
_SINGLE: Final = 192
_STEP: Final = 32  # 64 steps: up to 2,240 characters, above a corpus's default limit for sentences


class Shard(Record):
    """A group of sentences that one task translates or embeds."""

    digest: str
    """sha256 over the sentences' ids, in order."""
    sentences: Annotated[Path | bytes, NotInKey]
    """An Arrow stream: a file of this run, or on another machine its content."""
    start: Annotated[int, NotInKey] = 0
    """Sentences in the shards before it, for progress."""
    rows: Annotated[int, NotInKey]
    """Sentences in the shard."""
    total: Annotated[int, NotInKey] = 0
    """Sentences in all shards of the run, for progress; 0 if the shard reports its own."""

    def read(self) -> pl.DataFrame:
        """Return the sentences: sentence_id, text."""
        return pl.read_ipc_stream(self.sentences)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the sentences with the shard, because another machine cannot read the file."""
        content = self.sentences if isinstance(self.sentences, bytes) else self.sentences.read_bytes()
        return _received, (self.digest, content, self.rows)


def _received(digest: str, sentences: bytes, rows: int) -> Shard:
    return Shard(digest=digest, sentences=sentences, rows=rows)


def write_shards(frames: Iterable[pl.DataFrame], folder: Path) -> list[Shard]:
    """Write each frame (sentence_id, text) to a file of a folder, as a shard."""
    shards: list[Shard] = []
    start = 0
    for number, frame in enumerate(frames):
        file = folder / f"{number:06}.arrow"
        frame.select("sentence_id", "text").write_ipc_stream(file, compression="zstd")
        shards.append(Shard(digest=digest_of(frame), sentences=file, start=start, rows=frame.height))
        start += frame.height
    return shards


def plan_shards(missing: Iterable[pl.DataFrame], shard_rows: int, folder: Path) -> list[Shard]:
    """Cut sentences, sorted by (length in characters, sentence_id), into shards of `shard_rows`, the last one smaller.

    The frames have sentence_id and text, each sentence once; the shards are files of the folder.
    """
    with TemporaryDirectory(dir=folder) as scratch:
        by_length = Partitions(Path(scratch), _ROWS, "slot", bits=_SLOT_BITS, tidy=_ordered)
        for frame in missing:
            by_length.add(frame.select("sentence_id", "text", slot=_slot(pl.col("text").str.len_chars())))
        return write_shards(equal_frames(by_length, shard_rows), folder)


def digest_of(rows: pl.DataFrame) -> str:
    """Return the sha256 over the ids of sentences, in order."""
    return hashlib.sha256(rows["sentence_id"].to_numpy().astype("<u8").tobytes()).hexdigest()


def _slot(chars: pl.Expr) -> pl.Expr:
    """Return the partition of a length, in a number's top bits: short lengths have one each, long ones share."""
    beyond = _SINGLE + (chars - _SINGLE) // _STEP
    return pl.when(chars < _SINGLE).then(chars).otherwise(beyond.clip(upper_bound=255)).cast(pl.UInt64) * 2**56


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(pl.col("text").str.len_chars(), "sentence_id")


def scattered(shard: Shard) -> str:
    """Return a sort key that differs between processes, so that two workers rarely take the same shard."""
    return hashlib.sha256(f"{os.getpid()} {shard.digest}".encode()).hexdigest()
