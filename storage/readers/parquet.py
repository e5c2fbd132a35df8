"""Parquet files and other Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from storage.errors import SourceError
from storage.readers.blocks import open_bytes
from storage.readers.report import ReadReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from storage.readers.columns import Columns

BATCH_ROWS: Final = 131_072


def columns(path: str, report: ReadReport) -> tuple[str, ...]:
    """The names in the file's schema.

    Raises:
        SourceError: it is not a Parquet file.
    """
    with open_bytes(path, ReadReport(report.name)) as (stream, _):
        return tuple(_opened(path, stream).schema_arrow.names)


def read(path: str, wanted: Columns, report: ReadReport, batch_rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
    """Frames of the wanted columns; rows without one of the texts are rejected.

    Raises:
        SourceError: the file is damaged or a text column holds something else.
    """
    with open_bytes(path, report) as (stream, _):
        file = _opened(path, stream)
        earlier, rows = report.bytes_read, max(file.metadata.num_rows, 1)
        size = report.bytes_total - earlier
        done = 0
        try:
            for batch in file.iter_batches(batch_size=batch_rows, columns=list(wanted.names)):
                frames = from_arrow([batch], path, wanted, report, first_row=done + 1)
                done += batch.num_rows
                report.bytes_read = earlier + size * done // rows
                yield from frames
        except pa.ArrowException as error:
            raise SourceError(f"{path}: damaged Parquet file ({error}); copy it again") from error


def from_arrow(
    batches: Iterable[pa.RecordBatch], origin: str, wanted: Columns, report: ReadReport, first_row: int = 1
) -> Iterator[pl.DataFrame]:
    """Frames of Arrow batches, checked: valid UTF-8, texts that are strings and not null.

    Raises:
        SourceError: a text column holds something else than strings, or a string is not UTF-8.
    """
    for batch in batches:
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{origin}: a string is not UTF-8 ({error}); write the file again") from error
        frame = _texts_as_strings(cast("pl.DataFrame", pl.from_arrow(batch)).select(wanted.names), origin, wanted)
        whole = frame.select(pl.all_horizontal(pl.col(wanted.texts).is_not_null())).to_series()
        for row in (~whole).arg_true().to_list():
            missing = [name for name in wanted.texts if frame[name][row] is None]
            report.reject(origin, first_row + row, f"column {missing[0]!r} is null", str(frame.row(row)).encode())
        report.records += int(whole.sum())
        first_row += frame.height
        yield frame if whole.all() else frame.filter(whole)


def _texts_as_strings(frame: pl.DataFrame, origin: str, wanted: Columns) -> pl.DataFrame:
    for name in wanted.texts:
        dtype = frame.schema[name]
        if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
            raise SourceError(f"{origin}: column {name!r} holds {dtype}, expected strings; name another column")
    return frame.with_columns(pl.col(wanted.texts).cast(pl.String))


def _opened(path: str, stream: object) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(stream)
    except pa.ArrowException as error:
        raise SourceError(f"{path} is not a Parquet file ({error}); check the file and its format") from error
