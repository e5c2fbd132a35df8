"""One way to read any file of records: its format by suffix, its columns checked, frames of bounded size."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Final, Literal, Protocol, get_args

import polars as pl

from storage.errors import SourceError
from storage.readers import afs, delimited, jsonl, lines, parquet, sts_files
from storage.readers.columns import Columns, require
from storage.readers.report import ReadReport

Format = Literal["txt", "jsonl", "csv", "tsv", "parquet", "sts-task", "sts-benchmark", "afs"]

SUFFIXES: Final[dict[str, Format]] = {
    ".txt": "txt",
    ".text": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSIONS: Final = (".gz", ".zst")


class _Read(Protocol):
    def __call__(self, path: str, wanted: Columns, report: ReadReport) -> Iterator[pl.DataFrame]: ...


_COLUMNS: Final[dict[Format, Callable[[str, ReadReport], tuple[str, ...]]]] = {
    "txt": lines.columns,
    "jsonl": jsonl.columns,
    "csv": partial(delimited.columns, dialect=delimited.CSV),
    "tsv": partial(delimited.columns, dialect=delimited.TSV),
    "parquet": parquet.columns,
    "sts-task": sts_files.columns,
    "sts-benchmark": sts_files.columns,
    "afs": afs.columns,
}
_READ: Final[dict[Format, _Read]] = {
    "txt": lines.read,
    "jsonl": jsonl.read,
    "csv": partial(delimited.read, dialect=delimited.CSV),
    "tsv": partial(delimited.read, dialect=delimited.TSV),
    "parquet": parquet.read,
    "sts-task": sts_files.read_task,
    "sts-benchmark": sts_files.read_benchmark,
    "afs": afs.read,
}


def is_readable(path: str) -> bool:
    """Whether a file's suffix names a format, a compression suffix aside."""
    return _suffix(path) in SUFFIXES


def format_of(path: str) -> Format:
    """The format that a file's suffix names, a compression suffix aside.

    Raises:
        SourceError: the suffix names none.
    """
    if is_readable(path):
        return SUFFIXES[_suffix(path)]
    raise SourceError(
        f"{path}: its suffix names no known format; known are {', '.join(SUFFIXES)}, each also with "
        f"{' or '.join(_COMPRESSIONS)}; rename the file or set format to one of {', '.join(get_args(Format))}"
    )


def _suffix(path: str) -> str:
    name = path.lower()
    for compression in _COMPRESSIONS:
        name = name.removesuffix(compression)
    return PurePosixPath(name).suffix


def columns_of(path: str, kind: Format, report: ReadReport) -> tuple[str, ...]:
    """The names of a file's columns.

    Raises:
        SourceError: the file is missing or not of that format.
    """
    return _COLUMNS[kind](path, report)


def read_table(path: str, kind: Format, wanted: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """The wanted columns of a file in frames of bounded size; what cannot be read is counted in `report`.

    Raises:
        SourceError: the file or a column is missing, or the file is damaged.
    """
    require(path, columns_of(path, kind, report), wanted.names)
    yield from _READ[kind](path, wanted, report)
