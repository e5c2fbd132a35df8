"""Read Parquet and Arrow files."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final, Literal, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.os_errors import first_line, translated
from bsl.storage.readers.blocks import open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from bsl.storage.readers.columns import Columns
    from bsl.storage.readers.read_report import ReadReport


BATCH_ROWS: Final = 131_072
_FILE_MAGIC: Final = b"ARROW1"
_STREAM_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
Kind = Literal["Parquet", "Arrow"]


def schema(path: str, kind: Kind) -> pa.Schema:
    """Return the schema of a file.

    Raises:
        SourceError: it is not a file of that kind.
    """
    with open_bytes(path) as (stream, _), explain_damage(path, kind):
        found, _ = batches_of(path, stream, kind)
        return pa.schema(list(zip(found.names, found.types, strict=True)))  # check the names now


def read(path: str, requested: Columns, report: ReadReport, kind: Kind) -> Iterator[pl.DataFrame]:
    """Yield frames of about `BATCH_ROWS` rows of the requested columns.

    Raises:
        SourceError: the file is damaged, or a text column contains other values than strings.
    """
    before = report.bytes_read
    with open_bytes(path) as (stream, raw):
        with explain_damage(path, kind):
            _, batches = batches_of(path, stream, kind, requested.names)
        for batch in _joined(_sound(batches, path, requested, kind)):
            frame = cast("pl.DataFrame", pl.from_arrow(batch))
            frame.columns = list(requested.names)
            frame = frame.with_columns(pl.col(requested.texts).cast(pl.String))
            report.records += frame.height
            report.bytes_read = before + raw.tell()
            yield frame
        if raw.seekable():
            report.bytes_read = before + raw.seek(0, os.SEEK_END)  # the footer was read first


def batches_of(
    path: str, stream: IO[bytes], kind: Kind, columns: Sequence[str] | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return schema and batches of an open file; only the named columns of a Parquet file are read.

    Arrow has two formats: `datasets` writes the stream format, Polars and pandas the file format.
    """
    if kind == "Parquet":
        table = pq.ParquetFile(stream)
        return table.schema_arrow, _complete(table, columns)
    with open_bytes(path) as (head, _):
        is_file = head.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    if is_file:
        file = pa.ipc.open_file(stream if stream.seekable() else stream.read())
        return file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
    reader = pa.ipc.open_stream(stream)
    return reader.schema, _whole(reader, stream)


def _whole(reader: pa.RecordBatchReader, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream, which Arrow also reads without its end mark, as after a killed writer."""
    yield from reader
    if stream.seekable():
        stream.seek(stream.tell() - len(_STREAM_END))
        if stream.read() != _STREAM_END:
            raise pa.ArrowInvalid("its end mark is missing, so batches may be missing, or something follows it")


def _complete(table: pq.ParquetFile, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield batches of a Parquet file, whose footer has the number of rows: damaged pages may end early, in silence."""
    found, expected = 0, table.metadata.num_rows
    for batch in table.iter_batches(batch_size=BATCH_ROWS, columns=columns and list(columns)):
        found += batch.num_rows
        yield batch
    if found != expected:
        raise pa.ArrowInvalid(f"found {found:,} of {expected:,} rows")


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of about `BATCH_ROWS` rows: `datasets` writes batches of 1,000."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(one.num_rows for one in pending) >= BATCH_ROWS:
            yield from pa.Table.from_batches(pending).combine_chunks().to_batches()
            pending = []
    if pending:
        yield from pa.Table.from_batches(pending).combine_chunks().to_batches()


def _sound(batches: Iterator[pa.RecordBatch], path: str, requested: Columns, kind: Kind) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of each batch, checked: some types and damaged values make Arrow or Polars crash."""
    while True:
        with explain_damage(path, kind):
            batch = next(batches, None)
        if batch is None:
            return
        columns = [_column(batch, name, path, requested) for name in requested.names]
        try:
            # Drop the schema's metadata, because damaged metadata makes Polars crash, and the names, because Polars
            # renames an empty name.
            chosen = pa.RecordBatch.from_arrays(columns, names=[str(number) for number in range(len(columns))])
            chosen.validate(full=True)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{path}: a value is damaged or not UTF-8 ({error}). Write the file again.") from error
        yield chosen


def _column(batch: pa.RecordBatch, name: str, path: str, requested: Columns) -> pa.Array:
    indices = batch.schema.get_all_field_indices(name)
    if len(indices) != 1:
        raise SourceError(f"{path}: {len(indices)} columns have the name {name!r}, expected one. Rename the others.")
    dtype = batch.schema.field(indices[0]).type
    if name in requested.texts and not (_is_text(_value(dtype)) or pa.types.is_null(_value(dtype))):
        raise SourceError(
            f"{path}: column {name!r} has type {dtype}, expected strings. Write its values as strings, or name another "
            "column."
        )
    if name in requested.carried:
        require_carried(path, name, dtype)
    elif not is_readable(dtype):
        raise SourceError(
            f"{path}: column {name!r} has type {dtype}, expected strings or numbers. Write its values as "
            "strings, or name another column."
        )
    return _in_known_zone(batch.column(indices[0]))


def _value(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def is_readable(dtype: pa.DataType) -> bool:
    """Return whether columns of a type can be read: strings, numbers, or only nulls."""
    types, value = pa.types, _value(dtype)
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal128, types.is_null)
    return _is_text(value) or any(kind(value) for kind in kinds)


def is_carried(dtype: pa.DataType) -> bool:
    """Return whether columns of a type can be copied: readable ones, dates, times, datetimes, durations, decimals."""
    types, value = pa.types, _value(dtype)
    kinds = (types.is_date, types.is_time, types.is_timestamp, types.is_duration)
    has_decimals = types.is_decimal(value) and not types.is_decimal256(value)  # Polars crashes at those
    return is_readable(dtype) or has_decimals or any(kind(value) for kind in kinds)


def require_carried(path: str, name: str, dtype: pa.DataType) -> None:
    """Check that columns of a type can be copied.

    Raises:
        SourceError: names the column and its type.
    """
    if not is_carried(dtype):
        raise SourceError(
            f"{path}: column {name!r} has type {dtype}, expected strings, numbers, dates or times. Write its values as "
            "strings, or leave the column out."
        )


def _in_known_zone(column: pa.Array) -> pa.Array:
    """Return a column, datetimes in UTC if Polars has not their time zone, such as `+05:30`."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return column
    try:
        pl.from_arrow(pa.array([], column.type))
    except pl.exceptions.PolarsError:
        return column.cast(pa.timestamp(column.type.unit, "UTC"))
    return column


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype))


def explain_damage(path: str, kind: Kind) -> AbstractContextManager[None]:
    """Turn any error into a `SourceError` about a damaged file: Arrow and Parquet readers raise many kinds.

    Raises:
        SourceError: names the file.
    """
    remedy = "Copy it again, or if it is in a cache, delete its folder. If it has another format, correct its suffix."
    return translated(
        lambda error: SourceError(f"{path} is not a complete {kind} file ({first_line(error):.200}). {remedy}"), ()
    )
