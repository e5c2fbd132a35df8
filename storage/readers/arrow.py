"""Arrow streams, in which `datasets` keeps its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from storage.readers.blocks import open_bytes
from storage.readers.parquet import BATCH_ROWS, checked_frame, damage_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from storage.readers.columns import Columns
    from storage.readers.read_report import ReadReport


def read(path: str, wanted: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield frames of the wanted columns; rows without one of the texts are rejected.

    Raises:
        SourceError: the stream is damaged, or a text column holds something else.
    """
    with open_bytes(path, report) as (stream, raw):
        before, done = report.bytes_read, 0
        for batch in _batches(stream, path):
            yield checked_frame(batch, path, wanted, report, first_row=done + 1)
            done += batch.num_rows
            report.bytes_read = before + raw.tell()


def _batches(stream: object, path: str) -> Iterator[pa.RecordBatch]:
    """Batches of about `BATCH_ROWS`: writers of `datasets` end one after 1,000 rows."""
    with damage_named(path, "Arrow stream"):
        batches = iter(pa.ipc.open_stream(stream))
    waiting: list[pa.RecordBatch] = []
    while True:
        with damage_named(path, "Arrow stream"):
            batch = next(batches, None)
        if batch is not None:
            waiting.append(batch)
        if waiting and (batch is None or sum(one.num_rows for one in waiting) >= BATCH_ROWS):
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
        if batch is None:
            return


def schema(path: str) -> pa.Schema:
    """Return the schema of a stream.

    Raises:
        SourceError: it is no Arrow stream.
    """
    with open_bytes(path) as (stream, _), damage_named(path, "Arrow stream"):
        return pa.ipc.open_stream(stream).schema
