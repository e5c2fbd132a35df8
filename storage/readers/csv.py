"""Read CSV and TSV files with a header line, by Python's csv module.

Design choices
- The header and the first records determine the separator of CSV; TSV is separated by tabs. A first line `sep=;`, as
  Excel writes it, names the separator.
- Fields of CSV may be quoted by `"`, or by `'` if the records show it. In TSV the records of the whole file decide
  whether quotes enclose fields (`bsl.storage.readers.dialect`).
- The csv module accepts a quote inside an unquoted field and knows line numbers. Polars' parser is five times as fast,
  but refuses such files without a line number. Both parsers could be combined only if they agreed on every file.
"""

from __future__ import annotations

import csv
import itertools
import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import MAX_LINE_BYTES, Block, line_blocks
from bsl.storage.readers.dialect import (
    FIELD_LIMIT,
    LONE_RETURN,
    MAX_LINES,
    RETURN,
    Dialect,
    Evidence,
    decoded_lines,
    evidence_of,
    is_quoted,
    is_torn,
    misfits,
    quotes_more_than_needed,
    reader,
    records_of,
    separator_of,
)
from bsl.storage.readers.encodings import remedy as encoding_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bsl.storage.readers.columns import Columns
    from bsl.storage.readers.read_report import ReadReport

UNNAMED: Final = "Unnamed: "
"""Before the number of a column without a name."""
QUOTES: Final = ('"', "'")
_ROWS: Final = 50_000
_SAMPLE_LINES: Final = 2_000  # lines that determine the separator
_SAMPLE_BYTES: Final = 1 << 20
_SWALLOWED: Final = 10  # lines: a valid record of fewer lines, each with as many separators as a record, is plausible
_SEP_LINE: Final = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


class _Header(NamedTuple):
    """The header of a file.

    Attributes:
        names: the column names.
        dialect: separator of the file and quote character of the header.
        body: the lines after the header in the first block.
    """

    names: tuple[str, ...]
    dialect: Dialect
    body: Block


def columns(path: str, *, tabs: bool, encoding: str | None = None) -> tuple[str, ...]:
    """Return the names in the header line of CSV, or if `tabs` of TSV.

    If several names are blank, they are `Unnamed: 2` and so on, by their position, as in pandas.

    Raises:
        SourceError: the file is empty, or its header is not UTF-8, blank, badly quoted or has duplicate names.
    """
    first = next(line_blocks(path, None, 1 << 20, encoding=encoding), None)
    if first is None:
        raise SourceError(
            f"{path} is empty, expected a header line with column names. Leave the file out, or write it again."
        )
    return _header(path, first, tabs=tabs).names


def read(
    path: str, requested: Columns, report: ReadReport, *, tabs: bool, encoding: str | None = None
) -> Iterator[pl.DataFrame]:
    """Yield frames of the requested columns, all strings.

    Records that are not UTF-8, or whose number of fields differs from the header's, are rejected.

    Raises:
        SourceError: as for `columns`, or an unclosed quote turns the rest of the file into one field, or it is unclear
            whether the fields of TSV are quoted.
    """
    blocks = line_blocks(path, report, encoding=encoding)
    first = next(blocks, None)
    if first is None:
        return
    names, dialect, body = _header(path, first, tabs=tabs)

    def bodies() -> Iterator[Block]:
        """Yield the lines after the header once more."""
        again = line_blocks(path, None, encoding=encoding)
        yield body
        yield from itertools.islice(again, 1, None)

    quote = _quote_of_tsv(path, bodies, dialect, len(names)) if tabs else _quote_of_csv(body, dialect, len(names))
    positions = [names.index(name) for name in requested.names]
    dialect = Dialect(dialect.separator, quote)
    records = _records(path, itertools.chain([body], blocks), body.first_line, dialect, len(names), report)
    while True:
        with FIELD_LIMIT.set_to(MAX_LINE_BYTES):
            rows = list(itertools.islice(records, _ROWS))
        report.records += len(rows)
        columns = {name: [row[at] for row in rows] for name, at in zip(requested.names, positions, strict=True)}
        yield pl.DataFrame(columns, schema=dict.fromkeys(requested.names, pl.String))
        if len(rows) < _ROWS:
            return


def _header(path: str, block: Block, *, tabs: bool) -> _Header:
    """Return the column names, the separator, and the lines after the header."""
    named, block = _named_separator(block)
    end = block.content.find(b"\n") + 1 or len(block.content)
    body = Block(block.content[end:], block.first_line + 1)
    try:
        line = block.content[:end].decode()
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{path}: the header is not UTF-8 ({error}). {encoding_remedy(path, block.content[:end])}"
        ) from error
    if LONE_RETURN.search(line):
        raise SourceError(
            f"{path}: the header contains a carriage return ({line[:40]!r}), as if lines ended in carriage returns; "
            "expected line feeds. Save the file with Unix or Windows line endings."
        )
    quote = _quote_of_header(line, tabs=tabs)
    following = list(itertools.islice(decoded_lines([Block(body.content[:_SAMPLE_BYTES], 1)]), _SAMPLE_LINES))
    separator = named or ("\t" if tabs else separator_of(line, following, quote or '"'))
    dialect = Dialect(separator, quote)
    try:
        with FIELD_LIMIT.set_to(MAX_LINE_BYTES):
            names = tuple(name.strip() for name in next(reader([line], dialect), []))
    except csv.Error as error:
        raise SourceError(
            f"{path}: the header cannot be read ({_csv_fault(error, 1)}): {line[:100]!r}. Quote each name at both ends "
            "or not at all."
        ) from error
    if not any(names):
        raise SourceError(f"{path}: line {block.first_line} is blank, expected a header line with column names")
    names = _with_numbered_blanks(names)
    if len(set(names)) < len(names):
        raise SourceError(
            f"{path}: the header has a column twice ({line.strip()[:100]!r}). Rename one of them, or add a header line "
            "if this line is data."
        )
    if tabs and len(names) == 1 and _is_separated_otherwise(line, following):
        raise SourceError(
            f"{path}: no line has a tab, but all have equally many fields by {separator_of(line, following)!r}. Give "
            f"the file the suffix .csv: `mv {shlex.quote(path)} {shlex.quote(path[:-4] + '.csv')}`."
        )
    return _Header(names, dialect, body)


def _named_separator(block: Block) -> tuple[str | None, Block]:
    """Return the separator that a first line `sep=;` names, and the block without that line."""
    end = block.content.find(b"\n") + 1 or len(block.content)
    found = _SEP_LINE.fullmatch(block.content[:end].decode(errors="replace").rstrip("\r\n"))
    if found is None:
        return None, block
    return found[1], Block(block.content[end:], block.first_line + 1)


def _with_numbered_blanks(names: tuple[str, ...]) -> tuple[str, ...]:
    """Number blank names if there are several: spreadsheets write them for empty columns."""
    if names.count("") < 2:
        return names
    return tuple(name or f"{UNNAMED}{place}" for place, name in enumerate(names))


def _quote_of_header(line: str, *, tabs: bool) -> str | None:
    """Return the quote character of a header: that around all its names, else the usual one of the format."""
    fields = re.split(r"[,;\t|]", line.strip())
    for quote in QUOTES:
        if all(field.startswith(quote) == field.endswith(quote) and field != quote for field in fields) and all(
            field.startswith(quote) for field in fields if field
        ):
            return quote
    return None if tabs else '"'


def _is_separated_otherwise(header: str, lines: list[str]) -> bool:
    """Return whether a header without tabs, and all lines after it, have equally many fields by another separator."""
    separator = separator_of(header, lines)
    return separator in header and bool(lines) and not misfits(header, lines, Dialect(separator, '"'))


def _quote_of_csv(body: Block, dialect: Dialect, width: int) -> str:
    """Return the quote character of CSV by the records of the first block: `'` only if they need it."""
    usual = dialect.quote or '"'
    if usual == "'" or not _has_quoted([body], dialect.separator, "'"):
        return usual
    single = _evidence(iter([body]), Dialect(dialect.separator, "'"), width)
    if not (single.fits and single.needed):
        return usual
    double = _evidence(iter([body]), Dialect(dialect.separator, usual), width)
    explains = double.fits and double.needed  # then an apostrophe at a field's start is part of the text
    return usual if double.bad < single.bad or (double.bad == single.bad and explains) else "'"


def _quote_of_tsv(path: str, bodies: Callable[[], Iterator[Block]], dialect: Dialect, width: int) -> str | None:
    """Return the quote character of TSV by all its records; None if quotes are ordinary characters."""
    for quote in QUOTES:
        if dialect.quote not in {None, quote} or not _has_quoted(bodies(), dialect.separator, quote):
            continue
        quoted = _evidence(bodies(), Dialect(dialect.separator, quote), width)
        plain_bad = sum(_is_misfit(line, dialect.separator, width) for line in decoded_lines(bodies()))
        if dialect.quote == quote:
            return quote if quoted.bad <= plain_bad or quoted.is_quoted_throughout else None
        if is_quoted(path, plain_bad, quoted, quote):
            return quote
    return None


def _evidence(blocks: Iterator[Block], dialect: Dialect, width: int) -> Evidence:
    first = next(blocks)
    return evidence_of(decoded_lines(itertools.chain([first], blocks)), first.first_line, dialect, width)


def _has_quoted(blocks: Iterable[Block], separator: str, quote: str) -> bool:
    """Return whether a field may begin with a quote character."""
    starts = (f"{separator}{quote}".encode(), f"\n{quote}".encode())
    return any(
        block.content.startswith(quote.encode()) or any(start in block.content for start in starts) for block in blocks
    )


def _is_misfit(line: str, separator: str, width: int) -> bool:
    return line.count(separator) != width - 1 and bool(line.strip("\r\n"))


def _records(
    path: str, blocks: Iterable[Block], number: int, dialect: Dialect, width: int, report: ReadReport
) -> Iterator[list[str]]:
    """Yield the fields of every valid record; reject the others and continue after them.

    Of a record in which an unclosed quote took in the following records, only the first line is rejected.
    Undecodable bytes become surrogates, which `_fault` finds. Blank lines are skipped.
    """
    for first, record, found in records_of(decoded_lines(blocks), number, dialect):
        if isinstance(found, csv.Error):
            if "limit" in str(found):
                raise SourceError(
                    f"{path}, line {first}: {found}, expected fields below {MAX_LINE_BYTES >> 20} MiB. Look for an "
                    "unclosed quote."
                ) from found
            fields, fault = [], _csv_fault(found, len(record))
            # The quote of the last line, if any, ended the record too early.
            has_swallowed = is_torn(record[:-1], dialect, width)
        else:
            fields = [field.replace(RETURN, "\r") for field in found]
            fault = _fault(fields, len(record), width)
            has_swallowed = (
                len(record) >= _SWALLOWED
                and is_torn(record, dialect, width)
                and not quotes_more_than_needed(found, "".join(record), dialect)  # else the lines would be quoted too
            )
        if has_swallowed and len(record) > 1:
            fault = f"it takes in the records up to line {first + len(record) - 1}, because a quote is not closed"
            del record[1:]
        if fault:
            shown = record[0].replace(RETURN, "\r").rstrip("\r\n").encode("utf-8", "surrogateescape")
            report.reject(path, first, fault, shown, lost=len(record))
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
    if span > MAX_LINES:
        return f"one record spans {span} lines, probably because a quote is not closed"
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return "not UTF-8"
    return ""
