"""Read any file of records: find its format by suffix, check its columns, yield frames of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl
import pyarrow as pa

from bsl.storage.errors import SourceError
from bsl.storage.readers import csv, jsonl, lines, parquet
from bsl.storage.readers.benchmarks import afs, senteval, sts
from bsl.storage.readers.columns import Columns, require
from bsl.storage.readers.read_report import NAME_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bsl.storage.readers.read_report import ReadReport

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

    A reader opens a file by `blocks.open_bytes`: any address, decompressed and bounded. It adds to `report.records` and
    `report.bytes_read`, and rejects a record (`report.reject`) or raises a SourceError. A requested column that a
    record lacks is null.

    Attributes:
        columns: the column names, or a function that returns a file's column names or schema, given its path.
        read: yields the requested columns, in frames of bounded size, given path, columns and report.
        suffixes: file suffixes of the format; empty if only a dataset's declaration selects it.
        headed: whether the first line has the column names, so that a missing header must be detected.
        decoded: whether both functions take the `encoding` of the file.
    """

    columns: tuple[str, ...] | Callable[..., tuple[str, ...] | pa.Schema]
    read: Callable[..., Iterator[pl.DataFrame]]
    suffixes: tuple[str, ...] = ()
    headed: bool = False
    decoded: bool = False


FORMATS: Final[dict[str, FileFormat]] = {
    "txt": FileFormat((lines.COLUMN,), lines.read, (".txt", ".text"), decoded=True),
    "jsonl": FileFormat(jsonl.schema, jsonl.read, (".jsonl", ".ndjson"), decoded=True),
    "csv": FileFormat(
        partial(csv.columns, tabs=False), partial(csv.read, tabs=False), (".csv",), headed=True, decoded=True
    ),
    "tsv": FileFormat(
        partial(csv.columns, tabs=True), partial(csv.read, tabs=True), (".tsv",), headed=True, decoded=True
    ),
    "parquet": FileFormat(
        partial(parquet.schema, kind="Parquet"), partial(parquet.read, kind="Parquet"), (".parquet", ".pq")
    ),
    "arrow": FileFormat(partial(parquet.schema, kind="Arrow"), partial(parquet.read, kind="Arrow"), (".arrow",)),
    "sts-task": FileFormat(sts.COLUMNS, _at_once(sts.read_task)),
    "sts-benchmark": FileFormat(sts.COLUMNS, _at_once(sts.read_benchmark)),
    "afs": FileFormat(tuple(afs.SCHEMA), _at_once(afs.read_afs)),
    "senteval": FileFormat(senteval.columns, _at_once(senteval.read_senteval)),
    "view-pairs": FileFormat(lines.VIEW_COLUMNS, lines.read_view_pairs),
}


def _as_lines(path: str) -> str:
    return jsonl.remedy(path, f"{_stem(path)}.jsonl")


def _as_table(path: str) -> str:  # noqa: ARG001 - like the others
    return "Save the file in one of these formats, such as .csv."


def _unpacked(path: str) -> str:  # noqa: ARG001
    return "Unpack it, and name the file or folder that was in it."


def _as_arrow(path: str) -> str:
    return f"Rename it to {_stem(path)}.arrow."


def _as_sheet(path: str) -> str:
    return f"Save the sheet as {_stem(path)}.csv in the spreadsheet program (CSV UTF-8)."


def _as_text(path: str) -> str:
    return f"Save its text as {_stem(path)}.txt, one sentence per line or in paragraphs."


_REMEDIES: Final[dict[str, Callable[[str], str]]] = {
    ".json": _as_lines,
    **dict.fromkeys((*_COMPRESSIONS, ".xz", ".bz2", ".tar", ".tgz", ".7z"), _unpacked),
    **dict.fromkeys((".feather", ".ipc"), _as_arrow),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), _as_sheet),
    **dict.fromkeys((".pdf", ".docx", ".doc", ".odt", ".rtf", ".epub", ".html", ".htm", ".md", ".tex"), _as_text),
}
"""Suffix of a file that cannot be read → what to do, given its path."""
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
    remedy = _REMEDIES.get(_suffix(path), _as_table)(path)
    raise SourceError(
        f"{path}: unknown file suffix, expected one of {', '.join(SUFFIXES)}, which {' or '.join(_COMPRESSIONS)} may "
        f"follow. {remedy} If it has one of these formats, rename it, or in a recipe set `ingest.sources[].format` to "
        f"one of {', '.join(FORMATS)}."
    )


def _suffix(path: str) -> str:
    name = PurePosixPath(path.lower())
    return name.with_suffix("").suffix or name.suffix if name.suffix in _COMPRESSIONS else name.suffix


def _stem(path: str) -> str:
    """Return the name of a file without the suffix and that of a compression."""
    name = PurePosixPath(path)
    return (name.with_suffix("") if name.suffix.lower() in _COMPRESSIONS else name).stem


def columns_of(
    path: str,
    kind: Format,
    *,
    readable: bool = False,
    carried: bool = False,
    encoding: str | None = None,
    until: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the names of a file's columns.

    Args:
        path: the file.
        kind: its format.
        readable: omit columns of other types than strings and numbers.
        carried: omit columns that cannot be copied; of JSON lines, all can, lists and objects as JSON.
        encoding: encoding of the file if it is not UTF-8.
        until: columns after which the keys of JSON lines are not searched further.

    Raises:
        SourceError: the file is missing or not of that format.
    """
    columns = FORMATS[kind].columns
    options = _options(kind, encoding) | ({"until": until} if kind == "jsonl" else {})
    found = columns if isinstance(columns, tuple) else columns(path, **options)
    if not isinstance(found, pa.Schema):
        return found
    if carried and kind != "jsonl":
        return tuple(field.name for field in found if parquet.is_carried(field.type))
    return tuple(field.name for field in found if not readable or parquet.is_readable(field.type))


def read_table(
    path: str,
    kind: Format,
    requested: Columns,
    report: ReadReport,
    *,
    encoding: str | None = None,
    keep_nulls: bool = False,
    remedy: str = NAME_COLUMNS,
) -> Iterator[pl.DataFrame]:
    """Yield the requested columns of a file in frames of bounded size; `report` counts unreadable records.

    A text that is null, or absent from a record, is an empty string, as in CSV, unless `keep_nulls`; `report` counts
    empty texts. `remedy` says how to name other columns, if one is missing.

    Raises:
        SourceError: the file or a column is missing, or the file is damaged.
    """
    require(path, columns_of(path, kind, encoding=encoding, until=requested.names), requested.names, remedy)
    texts = list(requested.texts)
    for frame in FORMATS[kind].read(path, requested, report, **_options(kind, encoding)):
        filled = frame.with_columns(pl.col(texts).fill_null("")) if texts else frame
        report.empty += sum(int((filled[name].str.strip_chars() == "").sum()) for name in texts)
        yield frame if keep_nulls else filled


def _options(kind: Format, encoding: str | None) -> dict[str, Any]:
    return {"encoding": encoding} if FORMATS[kind].decoded else {}
