"""Sentences that are to be translated, cut into shards of equal size."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict

from storage.keys import NotInKey


class Shard(BaseModel):
    """Some sentences that one task translates."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    digest: str
    """sha256 over the sentences' ids, in order."""
    plan: Annotated[Path, NotInKey]
    """Parquet file of all missing sentences of this run: sentence_id, text."""
    start: Annotated[int, NotInKey]
    """First row of the shard in the plan."""
    rows: Annotated[int, NotInKey]
    """Sentences in the shard."""

    def read(self) -> pl.DataFrame:
        """The sentences: sentence_id, text."""
        return pl.scan_parquet(self.plan).slice(self.start, self.rows).collect()


def plan_shards(missing: pl.LazyFrame, shard_rows: int, plan: Path) -> list[Shard]:
    """Cut sentences into shards of `shard_rows`, the last one smaller.

    Args:
        missing: sentence_id and text.
        shard_rows: Sentences per shard.
        plan: File to write them to, sorted by (length in characters, sentence_id).
    """
    ordered = missing.select("sentence_id", "text").sort(pl.col("text").str.len_chars(), "sentence_id")
    ordered.sink_parquet(plan, row_group_size=shard_rows)
    ids = pl.read_parquet(plan, columns=["sentence_id"])["sentence_id"].to_numpy().astype("<u8")
    return [
        Shard(digest=hashlib.sha256(part.tobytes()).hexdigest(), plan=plan, start=start, rows=len(part))
        for start in range(0, len(ids), shard_rows)
        if len(part := ids[start : start + shard_rows])
    ]


def scattered(shard: Shard) -> str:
    """A place in an order that is another one in each process, so that two workers rarely meet."""
    return hashlib.sha256(f"{os.getpid()} {shard.digest}".encode()).hexdigest()
