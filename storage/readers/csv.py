"""Read CSV and TSV files with a header line, by Python's csv module.

Design choices
- Fields may be quoted in CSV, whose header determines the separator; in TSV a quote is an ordinary character.
- The csv module accepts a quote inside an unquoted field and knows line numbers. Polars' parser is five times as fast,
  but refuses such files without a line number. Both parsers could be combined only if they agreed on every file.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError
from storage.readers.blocks import MAX_LINE_BYTES, Block, line_blocks

if TYPE_CHECKING:
    import _csv
    from collections.abc import Iterable, Iterator

    from storage.readers.columns import Columns
    from storage.readers.read_report import ReadReport

_ROWS: Final = 50_000
_MAX_LINES: Final = 1000  # lines of one record; more means an unclosed quote
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
# Replaces a carriage return within a line, which the csv module rejects; no decoded text contains it.
_RETURN: Final = "\udc0d"
_SEPARATORS: Final = (";", "\t", "|")  # candidates if the header has no comma
_QUOTED: Final = re.compile('"[^"]*"')


def columns(path: str, *, quoted: bool) -> tuple[str, ...]:
    """Return the names in the header line of TSV, or if `quoted` of CSV, whose header determines the separator.

    Raises:
        SourceError: the file is empty, or its header is not UTF-8, blank, badly quoted or has duplicate names.
    """
    first = next(line_blocks(path, None, 1 << 20), None)
    if first is None:
        raise SourceError(f"{path} is empty, expected a header line with column names")
    return _header(path, first, quoted=quoted)[0]


def read(path: str, requested: Columns, report: ReadReport, *, quoted: bool) -> Iterator[pl.DataFrame]:
    """Yield frames of the requested columns, all strings.

    Records that are not UTF-8, or whose number of fields differs from the header's, are rejected.

    Raises:
        SourceError: as for `columns`, or an unclosed quote turns the rest of the file into one field.
    """
    blocks = line_blocks(path, report)
    first = next(blocks, None)
    if first is None:
        return
    names, separator, body = _header(path, first, quoted=quoted)
    positions = [names.index(name) for name in requested.names]
    after = itertools.chain([body], blocks)
    records = _records(path, after, body.first_line, separator, len(names), report, quoted=quoted)
    while True:
        rows = list(itertools.islice(records, _ROWS))
        report.records += len(rows)
        columns = {name: [row[at] for row in rows] for name, at in zip(requested.names, positions, strict=True)}
        yield pl.DataFrame(columns, schema=dict.fromkeys(requested.names, pl.String))
        if len(rows) < _ROWS:
            return


def _header(path: str, block: Block, *, quoted: bool) -> tuple[tuple[str, ...], str, Block]:
    """Return the column names, the separator, and the lines after the header."""
    end = block.content.find(b"\n") + 1 or len(block.content)
    try:
        line = block.content[:end].decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: the header is not UTF-8 ({error}). Save the file as UTF-8.") from error
    if _LONE_RETURN.search(line):
        raise SourceError(
            f"{path}: the header contains a carriage return ({line[:40]!r}), as if lines ended in carriage returns; "
            "expected line feeds. Save the file with Unix or Windows line endings."
        )
    separator = _separator(line) if quoted else "\t"
    try:
        names = tuple(name.strip() for name in next(_reader([line], separator, quoted=quoted), []))
    except csv.Error as error:
        raise SourceError(
            f"{path}: the header cannot be read ({_csv_fault(error, 1)}): {line[:100]!r}. Quote each name at both ends "
            "or not at all."
        ) from error
    if not any(names):
        raise SourceError(f"{path}: line 1 is blank, expected a header line with column names")
    if len(set(names)) < len(names):
        raise SourceError(
            f"{path}: the header has a column twice ({line.strip()!r}). Rename one of them, or add a header line if "
            "this line is data."
        )
    return names, separator, Block(block.content[end:], block.first_line + 1)


def _separator(header: str) -> str:
    """Return a comma if the header has one outside quotes, else the most frequent of the other separators."""
    outside = _QUOTED.sub("", header.rstrip())
    most = max(_SEPARATORS, key=outside.count)
    return most if most in outside and "," not in outside else ","


def _reader(lines: Iterable[str], separator: str, *, quoted: bool) -> _csv.Reader:
    csv.field_size_limit(MAX_LINE_BYTES)  # the module's default is 128 KiB
    # Without `strict`, text after a closing quote joins the field, and a later quote swallows the next records.
    return csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=True)


def _records(
    path: str, blocks: Iterable[Block], number: int, separator: str, width: int, report: ReadReport, *, quoted: bool
) -> Iterator[list[str]]:
    """Yield the fields of every valid record; reject the others and continue after them.

    Undecodable bytes become surrogates, which `_fault` finds. Blank lines are skipped.
    """
    record: list[str] = []  # the lines that the csv module has read for the current record

    def lines() -> Iterator[str]:
        for block in blocks:
            text = _LONE_RETURN.sub(_RETURN, block.content.decode("utf-8", errors="surrogateescape"))
            for line in io.StringIO(text, newline="\n"):
                record.append(line)
                yield line

    reader = _reader(lines(), separator, quoted=quoted)
    while True:
        number += len(record)
        record.clear()
        try:
            fields = next(reader, None)
        except csv.Error as error:
            if "limit" in str(error):
                raise SourceError(
                    f"{path}, line {number}: {error}, expected fields below {MAX_LINE_BYTES >> 20} MiB. Look for an "
                    "unclosed quote."
                ) from error
            fields, fault = [], _csv_fault(error, len(record))
        else:
            if fields is None:
                return
            fields = [field.replace(_RETURN, "\r") for field in fields]
            fault = _fault(fields, len(record), width)
        if fault:
            shown = record[0].replace(_RETURN, "\r").rstrip("\r\n").encode("utf-8", "surrogateescape")
            report.reject(path, number, fault, shown, lost=len(record))
        elif fields:
            yield fields


def _csv_fault(error: csv.Error, span: int) -> str:
    """Explain a csv error in a record that spans this many lines."""
    if "end of data" in str(error):
        return f"one record spans {span} lines, probably because a quote is not closed"
    return "text follows a closing quote" if "expected after" in str(error) else str(error)


def _fault(fields: list[str], span: int, width: int) -> str:
    """Return why a record is rejected; empty if it is valid or a blank line."""
    if fields and len(fields) != width:
        return f"{len(fields)} fields, expected {width}"
    if span > _MAX_LINES:
        return f"one record spans {span} lines, probably because a quote is not closed"
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return "not UTF-8"
    return ""
