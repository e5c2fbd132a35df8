"""Read any file of records: find its format by suffix, check its columns, yield frames of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa

from storage.errors import SourceError
from storage.readers import csv, jsonl, lines, parquet
from storage.readers.benchmarks import afs, senteval, sts, useb
from storage.readers.columns import Columns, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from storage.readers.read_report import ReadReport

_COMPRESSIONS: Final = (".gz", ".zst", ".zip")


def _at_once(table: Callable[[str], pl.DataFrame]) -> Callable[[str, Columns, ReadReport], Iterator[pl.DataFrame]]:
    """Return the `read` of a format whose files are small, from a function that returns all columns of a file."""

    def read(path: str, requested: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
        frame = table(path)
        report.records += frame.height
        yield frame.select(requested.names)

    return read


@dataclass(frozen=True)
class FileFormat:
    """Functions and properties of a file format.

    Attributes:
        columns: the column names, or a function that returns a file's column names or schema.
        read: yields the requested columns, in frames of bounded size.
        suffixes: file suffixes of the format; empty if only a dataset's declaration selects it.
        headed: whether the first line has the column names, so that a missing header must be detected.
    """

    columns: tuple[str, ...] | Callable[[str], tuple[str, ...] | pa.Schema]
    read: Callable[[str, Columns, ReadReport], Iterator[pl.DataFrame]]
    suffixes: tuple[str, ...] = ()
    headed: bool = False


FORMATS: Final[dict[str, FileFormat]] = {
    "txt": FileFormat((lines.COLUMN,), lines.read, (".txt", ".text")),
    "jsonl": FileFormat(jsonl.schema, jsonl.read, (".jsonl", ".ndjson")),
    "csv": FileFormat(partial(csv.columns, quoted=True), partial(csv.read, quoted=True), (".csv",), headed=True),
    "tsv": FileFormat(partial(csv.columns, quoted=False), partial(csv.read, quoted=False), (".tsv",), headed=True),
    "parquet": FileFormat(
        partial(parquet.schema, kind="Parquet"), partial(parquet.read, kind="Parquet"), (".parquet", ".pq")
    ),
    "arrow": FileFormat(partial(parquet.schema, kind="Arrow"), partial(parquet.read, kind="Arrow"), (".arrow",)),
    "sts-task": FileFormat(sts.COLUMNS, _at_once(sts.read_task)),
    "sts-benchmark": FileFormat(sts.COLUMNS, _at_once(sts.read_benchmark)),
    "afs": FileFormat(tuple(afs.SCHEMA), _at_once(afs.read_afs)),
    "senteval": FileFormat(senteval.columns, _at_once(senteval.read_senteval)),
    "useb": FileFormat(("text",), _at_once(useb.read_texts)),
    "view-pairs": FileFormat(lines.VIEW_COLUMNS, lines.read_view_pairs),
}
SUFFIXES: Final = {suffix: name for name, known in FORMATS.items() for suffix in known.suffixes}

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[tuple(FORMATS)]


def is_readable(path: str) -> bool:
    """Return whether a file's suffix, ignoring a compression suffix, is known."""
    return _suffix(path) in SUFFIXES


def format_of(path: str) -> Format:
    """Return the format of a file by its suffix, ignoring a compression suffix.

    Raises:
        SourceError: the suffix is unknown.
    """
    if is_readable(path):
        return SUFFIXES[_suffix(path)]
    raise SourceError(
        f"{path}: unknown file suffix, expected one of {', '.join(SUFFIXES)}, which {' or '.join(_COMPRESSIONS)} may "
        "follow. Save the file in one of these formats, such as .csv. If it has one, rename it, or in a recipe set "
        f"`ingest.sources[].format` to one of {', '.join(FORMATS)}."
    )


def _suffix(path: str) -> str:
    name = path.lower()
    for compression in _COMPRESSIONS:
        name = name.removesuffix(compression)
    return PurePosixPath(name).suffix


def columns_of(path: str, kind: Format, *, readable: bool = False) -> tuple[str, ...]:
    """Return the names of a file's columns; if `readable`, without those of other types than strings and numbers.

    Raises:
        SourceError: the file is missing or not of that format.
    """
    columns = FORMATS[kind].columns
    found = columns if isinstance(columns, tuple) else columns(path)
    if not isinstance(found, pa.Schema):
        return found
    return tuple(field.name for field in found if not readable or parquet.is_readable(field.type))


def read_table(path: str, kind: Format, requested: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield the requested columns of a file in frames of bounded size; `report` counts unreadable records.

    Raises:
        SourceError: the file or a column is missing, or the file is damaged.
    """
    require(path, columns_of(path, kind), requested.names)
    yield from FORMATS[kind].read(path, requested, report)
