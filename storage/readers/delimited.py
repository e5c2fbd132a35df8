"""CSV and TSV with a header line, which says how a CSV's fields are parted (`header`).

Polars parses blocks of whole records. A record may span lines inside quotes, so a block ends where the number of quotes
so far is even. The first block that Polars refuses, or in which a quote stands where none may, hands the rest of the
file to the csv module, which is slower, takes a quote inside an unquoted field for a character and knows line numbers.
"""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from storage.errors import SourceError
from storage.readers.blocks import BLOCK_BYTES, MAX_LINE_BYTES, Block, line_blocks, unpacked_by_polars
from storage.readers.delimited_header import LONE_RETURN, read_header, told
from storage.readers.read_report import ReadReport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readers.columns import Columns
    from storage.readers.delimited_header import Dialect

_ROWS: Final = 50_000
_MAX_LINES: Final = 1000  # of one record; more means that a quote was never closed
_QUOTE: Final = b'"'
# Stands for a carriage return within a line, at which the csv module would give up; no decoded byte becomes this.
_RETURN: Final = "\udc0d"


def columns(path: str, report: ReadReport, dialect: Dialect) -> tuple[str, ...]:
    """The names in the header line.

    Raises:
        SourceError: the file is empty, or its header is not UTF-8 or has a carriage return within.
    """
    for block in line_blocks(path, ReadReport(report.name), 1 << 20):
        return read_header(path, block, dialect).names
    raise SourceError(f"{path} is empty; expected a header line with the names of the columns")


def read(
    path: str, wanted: Columns, report: ReadReport, dialect: Dialect, block_bytes: int = BLOCK_BYTES
) -> Iterator[pl.DataFrame]:
    """Frames of the wanted columns, all strings; an empty field is null or an empty text.

    Rejected are records that are not UTF-8 or have another number of fields than the header.

    Raises:
        SourceError: a quote that is never closed makes the rest of the file one field.
    """
    header: tuple[str, ...] = ()
    blocks = _record_blocks(path, report, dialect, block_bytes)
    for block in blocks:
        body = block
        if not header:
            first = read_header(path, block, dialect)
            header, dialect, body = first.names, first.dialect, first.body
        frame = _fast(body.content, header, wanted, dialect)
        if frame is None:
            rest = itertools.chain([body], blocks)
            yield from _slow(_Rest(path, header, body.first_line, rest), wanted, report, dialect)
            return
        report.records += frame.height
        yield frame


def _record_blocks(path: str, report: ReadReport, dialect: Dialect, block_bytes: int) -> Iterator[Block]:
    """Blocks that end outside quotes; where no such end is found, the slow way sorts it out."""
    if not dialect.quoted:
        yield from line_blocks(path, report, block_bytes)
        return
    waiting = Block(b"", 1)
    for block in line_blocks(path, report, block_bytes):
        joined = Block(waiting.content + block.content, waiting.first_line if waiting.content else block.first_line)
        end = _end_outside_quotes(joined.content)
        if end == 0 and len(joined.content) > MAX_LINE_BYTES:
            end = len(joined.content)
        head, tail = joined.content[:end], joined.content[end:]
        waiting = Block(tail, joined.first_line + head.count(b"\n"))
        if head:
            yield Block(head, joined.first_line)
    if waiting.content:
        yield waiting


def _end_outside_quotes(content: bytes) -> int:
    """Length of the longest run of whole lines with an even number of quotes."""
    end = content.rfind(b"\n") + 1
    odd = content.count(_QUOTE, 0, end) % 2
    while end and odd:
        previous = content.rfind(b"\n", 0, end - 1) + 1
        odd = (odd + content.count(_QUOTE, previous, end)) % 2
        end = previous
    return end


def _fast(content: bytes, header: tuple[str, ...], wanted: Columns, dialect: Dialect) -> pl.DataFrame | None:
    """The parsed block, or None if a record of it needs a closer look."""
    if not content:
        return pl.DataFrame(schema=dict.fromkeys(wanted.names, pl.String))
    if unpacked_by_polars(content) or (dialect.quoted and _quotes_stray(content, dialect)):
        return None
    try:
        frame = pl.read_csv(
            content,
            has_header=False,
            schema=dict.fromkeys(header, pl.String),
            separator=dialect.separator,
            quote_char='"' if dialect.quoted and _QUOTE in content else None,
        ).select(*dict.fromkeys((*wanted.names, header[-1])))
    except pl.exceptions.PolarsError:  # of several kinds; the slow way says what is wrong
        return None
    # A record that ends early leaves its last column null. So does an empty field; the slow way tells them apart.
    holes = frame.select(pl.any_horizontal(pl.all().is_null().any())).item()
    return None if holes else frame.select(wanted.names)


def _quotes_stray(content: bytes, dialect: Dialect) -> bool:
    """Whether a quote opens within a field, or text follows one that closes.

    Quotes open and close in turn, also those of a doubled one: of two neighbours the first closes, the second opens.
    """
    if _QUOTE not in content:
        return False
    bytes_N = np.frombuffer(b"\n" + content + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(bytes_N == ord(_QUOTE))
    before, after = bytes_N[quotes[::2] - 1], bytes_N[quotes[1::2] + 1]
    opens = np.isin(before, np.frombuffer(f'{dialect.separator}\n"'.encode(), dtype=np.uint8))
    closes = np.isin(after, np.frombuffer(f'{dialect.separator}\r\n"'.encode(), dtype=np.uint8))
    return len(quotes) % 2 == 1 or not (opens.all() and closes.all())


@dataclass(frozen=True)
class _Rest:
    """What is left of a file: its remaining blocks, the first of which starts on `first_line`."""

    path: str
    header: tuple[str, ...]
    first_line: int
    blocks: Iterator[Block]


@dataclass(frozen=True)
class _Record:
    """Fields, the 1-based line on which they start, and how many lines they span."""

    fields: list[str]
    line: int
    span: int


def _slow(rest: _Rest, wanted: Columns, report: ReadReport, dialect: Dialect) -> Iterator[pl.DataFrame]:
    """The rest of the file, record by record."""
    places = [rest.header.index(name) for name in wanted.names]
    schema = dict.fromkeys(wanted.names, pl.String)
    rows: list[list[str]] = []
    for record in _records(rest, report, dialect):
        fault = _fault(record, len(rest.header))
        if fault:
            start = dialect.separator.join(record.fields).encode("utf-8", errors="surrogateescape")
            report.reject(rest.path, record.line, fault, start, lost=record.span)
            continue
        rows.append([record.fields[place] for place in places])
        report.records += 1
        if len(rows) == _ROWS:
            yield pl.DataFrame(rows, schema=schema, orient="row")
            rows = []
    yield pl.DataFrame(rows, schema=schema, orient="row")


def _records(rest: _Rest, report: ReadReport, dialect: Dialect) -> Iterator[_Record]:
    """All records; blank lines are skipped. Undecodable bytes become surrogates, which `_fault` finds.

    A record that the csv module refuses is rejected with the lines that it read of it; the next one starts after them.
    """
    first = ""

    def lines() -> Iterator[str]:
        nonlocal first
        for block in rest.blocks:
            for line in io.BytesIO(block.content):
                text = LONE_RETURN.sub(_RETURN, line.decode("utf-8", errors="surrogateescape"))
                first = first or text
                yield text

    reader = dialect.reader(lines())
    before = 0
    while True:
        first, number = "", rest.first_line + before
        try:
            fields = next(reader, None)
        except csv.Error as error:
            span = reader.line_num - before
            if "limit" in str(error):
                raise _too_long(rest.path, number, error) from error
            report.reject(
                rest.path,
                number,
                told(error, span),
                first.replace(_RETURN, "\r").encode("utf-8", "surrogateescape"),
                span,
            )
            before = reader.line_num
            continue
        if fields is None:
            return
        if fields:
            yield _Record([field.replace(_RETURN, "\r") for field in fields], number, reader.line_num - before)
        before = reader.line_num


def _too_long(path: str, number: int, error: csv.Error) -> SourceError:
    return SourceError(
        f"{path}, line {number}: {error}; expected fields below {MAX_LINE_BYTES >> 20} MiB; look for a quote that is "
        "never closed"
    )


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
