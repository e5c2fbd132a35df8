"""CSV and TSV with a header line, which says how a CSV's fields are parted (`delimited_header`), by the csv module.

It takes a quote inside an unquoted field for a character and knows line numbers. Polars' parser is five times as fast,
but refuses such files without a line, so that both would have to agree on every file.
"""

from __future__ import annotations

import csv
import io
import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from storage.errors import SourceError
from storage.readers.blocks import BLOCK_BYTES, MAX_LINE_BYTES, line_blocks
from storage.readers.delimited_header import LONE_RETURN, csv_fault, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from storage.readers.blocks import Block
    from storage.readers.columns import Columns
    from storage.readers.delimited_header import Dialect
    from storage.readers.read_report import ReadReport

_ROWS: Final = 50_000
_MAX_LINES: Final = 1000  # of one record; more means that a quote was never closed
# Stands for a carriage return within a line, at which the csv module would give up; no decoded byte becomes this.
_RETURN: Final = "\udc0d"


def columns(path: str, dialect: Dialect) -> tuple[str, ...]:
    """The names in the header line.

    Raises:
        SourceError: the file is empty, or its header is not UTF-8 or has a carriage return within.
    """
    for block in line_blocks(path, None, 1 << 20):
        return read_header(path, block, dialect)[0]
    raise SourceError(f"{path} is empty; expected a header line with the names of the columns")


def read(
    path: str, wanted: Columns, report: ReadReport, dialect: Dialect, block_bytes: int = BLOCK_BYTES
) -> Iterator[pl.DataFrame]:
    """Yield frames of the wanted columns, all strings.

    Rejected are records that are not UTF-8 or have another number of fields than the header.

    Raises:
        SourceError: a quote that is never closed makes the rest of the file one field.
    """
    blocks = line_blocks(path, report, block_bytes)
    first = next(blocks, None)
    if first is None:
        return
    names, own, body = read_header(path, first, dialect)
    places = [names.index(name) for name in wanted.names]
    records = _records(path, body.first_line, itertools.chain([body], blocks), report, own)
    good = _checked(path, records, len(names), report, own)
    while True:
        rows = list(itertools.islice(good, _ROWS))
        report.records += len(rows)
        columns = {name: [row[place] for row in rows] for name, place in zip(wanted.names, places, strict=True)}
        yield pl.DataFrame(columns, schema=dict.fromkeys(wanted.names, pl.String))
        if len(rows) < _ROWS:
            return


class _Record(NamedTuple):
    """Fields, the 1-based line on which they start, and how many lines they span."""

    fields: list[str]
    line: int
    span: int


def _checked(
    path: str, records: Iterable[_Record], expected: int, report: ReadReport, dialect: Dialect
) -> Iterator[list[str]]:
    """The fields of the records that have no fault; the others are rejected."""
    for record in records:
        if fault := _fault(record, expected):
            start = dialect.separator.join(record.fields).encode("utf-8", errors="surrogateescape")
            report.reject(path, record.line, fault, start, lost=record.span)
        else:
            yield record.fields


def _records(
    path: str, first_line: int, blocks: Iterable[Block], report: ReadReport, dialect: Dialect
) -> Iterator[_Record]:
    """All records; blank lines are skipped. Undecodable bytes become surrogates, which `_fault` finds.

    A record that the csv module refuses is rejected with the lines that it read of it; the next one starts after them.
    """
    first = ""

    def lines() -> Iterator[str]:
        nonlocal first
        for block in blocks:
            text = LONE_RETURN.sub(_RETURN, block.content.decode("utf-8", errors="surrogateescape"))
            for line in io.StringIO(text, newline="\n"):
                first = first or line
                yield line

    reader = dialect.reader(lines())
    before = 0
    while True:
        first, number = "", first_line + before
        try:
            fields = next(reader, None)
        except csv.Error as error:
            span = reader.line_num - before
            if "limit" in str(error):
                raise SourceError(
                    f"{path}, line {number}: {error}; expected fields below {MAX_LINE_BYTES >> 20} MiB; look for a "
                    "quote that is never closed"
                ) from error
            refused = first.replace(_RETURN, "\r").encode("utf-8", "surrogateescape")
            report.reject(path, number, csv_fault(error, span), refused, span)
            before = reader.line_num
            continue
        if fields is None:
            return
        if fields:
            yield _Record([field.replace(_RETURN, "\r") for field in fields], number, reader.line_num - before)
        before = reader.line_num


def _fault(record: _Record, expected: int) -> str | None:
    if len(record.fields) != expected:
        return f"{len(record.fields)} fields, expected {expected}"
    if record.span > _MAX_LINES:
        return f"one record spans {record.span} lines, as if a quote were never closed"
    try:
        "".join(record.fields).encode()
    except UnicodeEncodeError:
        return "not UTF-8"
    return None
