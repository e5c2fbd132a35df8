"""Sentences that are to be translated or embedded, cut into shards."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from models.runtime.partitions import Partitions, equal_frames
from storage.artifacts.keys import NotInKey
from storage.artifacts.schemas import rows_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROWS: Final = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "slot": pl.UInt64})
PLAN: Final = pa.schema([("sentence_id", pa.uint64()), ("text", pa.large_string())])
_SLOT_BITS: Final = 8
_SINGLE: Final = 192
_STEP: Final = 32  # 64 steps: up to 2,240 characters, above the longest sentence that a corpus keeps by default


class Shard(BaseModel):
    """Some sentences that one task translates or embeds."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    digest: str
    """sha256 over the sentences' ids, in order."""
    plan: Annotated[Path | bytes, NotInKey]
    """Parquet file of all missing sentences of this run: sentence_id, text, as `PLAN`; on another machine its bytes."""
    start: Annotated[int, NotInKey]
    """First row of the shard in the plan."""
    rows: Annotated[int, NotInKey]
    """Sentences in the shard."""

    def read(self) -> pl.DataFrame:
        """The sentences: sentence_id, text."""
        if isinstance(self.plan, bytes):
            return pl.read_ipc(self.plan)
        return rows_of_groups(self.plan, self.start, self.rows)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the sentences with the shard: another machine cannot read the plan."""
        buffer = BytesIO()
        self.read().write_ipc(buffer, compression="zstd")
        return _received, (self.digest, buffer.getvalue(), self.rows)


def _received(digest: str, sentences: bytes, rows: int) -> Shard:
    return Shard(digest=digest, plan=sentences, start=0, rows=rows)


def plan_shards(missing: Iterable[pl.DataFrame], shard_rows: int, plan: Path) -> list[Shard]:
    """Cut sentences into shards of `shard_rows`, the last one smaller.

    Args:
        missing: sentence_id and text, each sentence once.
        shard_rows: Sentences per shard.
        plan: File to write them to, sorted by (length in characters, sentence_id).
    """
    shards: list[Shard] = []
    with TemporaryDirectory(dir=plan.parent) as scratch, pq.ParquetWriter(plan, PLAN, compression="zstd") as writer:
        by_length = Partitions(Path(scratch), _ROWS, "slot", bits=_SLOT_BITS, tidy=_ordered)
        for frame in missing:
            by_length.add(frame.select("sentence_id", "text", slot=_slot(pl.col("text").str.len_chars())))
        for rows in equal_frames(by_length, shard_rows):
            writer.write_table(rows.select("sentence_id", "text").to_arrow().cast(PLAN))
            shards.append(Shard(digest=digest_of(rows), plan=plan, start=len(shards) * shard_rows, rows=rows.height))
    return shards


def digest_of(rows: pl.DataFrame) -> str:
    """sha256 over the ids of sentences, in order."""
    return hashlib.sha256(rows["sentence_id"].to_numpy().astype("<u8").tobytes()).hexdigest()


def _slot(chars: pl.Expr) -> pl.Expr:
    """The slot of a length, in the top bits of a number: short lengths have one each, long ones share."""
    beyond = _SINGLE + (chars - _SINGLE) // _STEP
    return pl.when(chars < _SINGLE).then(chars).otherwise(beyond.clip(upper_bound=255)).cast(pl.UInt64) * 2**56


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(pl.col("text").str.len_chars(), "sentence_id")


def scattered(shard: Shard) -> str:
    """A key to sort by, another in each process, so that two workers rarely meet."""
    return hashlib.sha256(f"{os.getpid()} {shard.digest}".encode()).hexdigest()
