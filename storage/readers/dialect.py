"""Decide the separator and the quote character of a CSV or TSV file by all of its records.

Writers agree on when a field is quoted: all fields (R), all strings, or only those that contain the separator, a quote,
a line break (csv, pandas, Polars) or a comma (Excel, also in TSV). A file is read with quotes if its quoted fields and
its unquoted ones fit one of these rules. Research datasets in TSV often have no quoting: a quote is then a character of
the text, and appears also inside unquoted fields.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from bsl.storage.errors import SourceError
from bsl.storage.process_setting import ProcessSetting
from bsl.storage.readers.blocks import MAX_LINE_BYTES

if TYPE_CHECKING:
    import _csv
    from collections.abc import Iterable, Iterator, Sequence

    from bsl.storage.readers.blocks import Block

MAX_LINES: Final = 1000  # lines of one record; more means an unclosed quote
RETURN: Final = "\udc0d"
"""Replaces a carriage return within a line, which the csv module rejects; no decoded text contains it."""
SEPARATORS: Final = (",", ";", "\t", "|")
LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_SAMPLE: Final = 200  # records that decide the separator
_FEW: Final = 10  # a file is quoted throughout if it has so many fields in quotes for each line that cannot be read
_NUMBER: Final = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?%?")


FIELD_LIMIT: Final = ProcessSetting(csv.field_size_limit, csv.field_size_limit)
"""Longest field of the csv module, 128 KiB by default."""


class Dialect(NamedTuple):
    """The separator of fields, and the quote character; None if quotes are ordinary characters."""

    separator: str
    quote: str | None


def reader(lines: Iterable[str], dialect: Dialect) -> _csv.Reader:
    """Return a strict reader of lines; read it inside `FIELD_LIMIT.set_to`."""
    # Without `strict`, text after a closing quote joins the field, and a later quote swallows the next records.
    if dialect.quote is None:
        return csv.reader(lines, delimiter=dialect.separator, quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(lines, delimiter=dialect.separator, quotechar=dialect.quote, strict=True)


def records_of(
    lines: Iterable[str], number: int, dialect: Dialect
) -> Iterator[tuple[int, list[str], list[str] | csv.Error]]:
    """Yield each record as the number of its first line, its lines, and its fields or the error of the csv module.

    Lines that the caller deletes from the end of a record are read again. Read it inside `FIELD_LIMIT.set_to`; a blank
    line has no fields.

    Args:
        lines: the lines.
        number: number of the first line.
        dialect: separator and quote character.
    """
    recorded = _Recorded(lines)
    records = reader(recorded, dialect)
    while True:
        fields: list[str] | csv.Error | None
        try:
            fields = next(records, None)
        except csv.Error as error:
            fields = error
        if fields is None:
            return
        read = list(recorded.record)
        yield number, recorded.record, fields
        recorded.again += reversed(read[len(recorded.record) :])
        number += len(recorded.record)
        recorded.record.clear()


class _Recorded:
    """Iterator over lines that records those of the current record; unlike a generator, it may go on after its end."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.again: list[str] = []  # lines to read again, last line first
        self.record: list[str] = []  # the lines that the csv module has read for the current record

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        self.record.append(self.again.pop() if self.again else next(self._lines))
        return self.record[-1]


def decoded_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the lines of blocks; undecodable bytes become surrogates."""
    for block in blocks:
        text = LONE_RETURN.sub(RETURN, block.content.decode("utf-8", errors="surrogateescape"))
        yield from io.StringIO(text, newline="\n")


def separator_of(header: str, lines: Sequence[str], quote: str = '"') -> str:
    """Return the separator of a header: one that splits the next records into as many fields, else the most frequent.

    Args:
        header: the line with the column names.
        lines: the next lines.
        quote: the quote character.
    """
    outside = re.sub(f"{quote}[^{quote}]*{quote}", "", header.rstrip())
    found = [separator for separator in SEPARATORS if separator in outside]
    if len(found) < 2:
        return found[0] if found else ","
    return min(
        found, key=lambda separator: (misfits(header, lines, Dialect(separator, quote)), -outside.count(separator))
    )


@FIELD_LIMIT.set_to(MAX_LINE_BYTES)
def misfits(header: str, lines: Sequence[str], dialect: Dialect) -> float:
    """Return the share of records whose number of fields differs from the header's."""
    records = (fields for _, _, fields in records_of([header, *lines], 1, dialect) if fields)
    some = itertools.islice(records, _SAMPLE + 1)
    counts = [-1 if isinstance(fields, csv.Error) else len(fields) for fields in some]
    return sum(count != counts[0] for count in counts[1:]) / max(1, len(counts) - 1)


@dataclass
class Evidence:
    """Counts over the records of a file, read with a quote character.

    Attributes:
        bad: lines of records that cannot be read, or have another number of fields than the header.
        torn: lines of records of several lines, each of which is a record too if quotes are ordinary characters.
        needed: quoted fields that contain the separator, a line break or a quote, without those that make records torn.
        bare: unquoted fields that contain the quote character.
        free: quoted fields that contain nothing that needs quotes.
        with_comma: quoted fields that contain a comma but nothing else that needs quotes.
        comma_outside: unquoted fields with a comma.
        first_bad, first_torn: line of the first such record.
        first_needed, first_bare, first_unneeded: line of the first field of each kind.
        quoted_columns, plain_columns: columns with quoted fields, and with unquoted fields other than numbers.
    """

    bad: int = 0
    torn: int = 0
    needed: int = 0
    bare: int = 0
    free: int = 0
    with_comma: int = 0
    comma_outside: int = 0
    first_bad: int = 0
    first_torn: int = 0
    first_needed: int = 0
    first_bare: int = 0
    first_unneeded: int = 0
    quoted_columns: set[int] = field(default_factory=set)
    plain_columns: set[int] = field(default_factory=set)

    @property
    def unneeded(self) -> int:
        """Number of quoted fields that no writer quotes if it does not quote all fields of a column."""
        if not self.quoted_columns & self.plain_columns:
            return 0
        return self.free + (self.with_comma if self.comma_outside else 0)

    @property
    def fits(self) -> bool:
        """Whether the quoted and unquoted fields fit the rule of a writer."""
        return bool(self.quoted_columns) and not self.bare and not self.unneeded

    @property
    def is_clear(self) -> bool:
        """Whether quotes are also around fields that do not make records torn."""
        return self.needed + self.free + self.with_comma > 0

    @property
    def is_quoted_throughout(self) -> bool:
        """Whether some columns are always quoted, and few lines cannot be read so."""
        enclosed = self.needed + self.free + self.with_comma
        return (
            self.free > 0
            and not self.bare
            and not self.quoted_columns & self.plain_columns
            and self.bad * _FEW <= enclosed
        )

    @property
    def contradicts(self) -> bool:
        """Whether some fields fit only a file with quoted fields, and others only a file without."""
        return self.needed > 0 and (self.bare > 0 or self.unneeded > 0)


@FIELD_LIMIT.set_to(MAX_LINE_BYTES)
def evidence_of(lines: Iterable[str], first_line: int, dialect: Dialect, width: int) -> Evidence:
    """Read all records with a quote character and count which fields are quoted.

    Args:
        lines: the lines after the header.
        first_line: number of the first one.
        dialect: separator and quote character.
        width: number of columns.
    """
    found = Evidence()
    for number, record, fields in records_of(lines, first_line, dialect):
        if isinstance(fields, csv.Error) or (fields and (len(fields) != width or len(record) > MAX_LINES)):
            found.bad += len(record)
            found.first_bad = found.first_bad or number
        elif fields:
            is_both = len(record) > 1 and is_torn(record, dialect, width)
            if is_both:
                found.torn += len(record)
                found.first_torn = found.first_torn or number
            _count(found, fields, "".join(record), number, dialect, is_both=is_both)
    return found


def quotes_more_than_needed(fields: list[str], raw: str, dialect: Dialect) -> bool:
    """Return whether a record has a quoted field that needs no quotes, as if its writer quotes whole columns."""
    found = Evidence()
    _count(found, fields, raw, 1, dialect)
    return found.free > 0


def is_torn(lines: Sequence[str], dialect: Dialect, width: int) -> bool:
    """Return whether each of some lines is a record of several fields, if quotes are ordinary characters."""
    return width > 1 and bool(lines) and all(line.count(dialect.separator) == width - 1 for line in lines)


def _count(
    found: Evidence, fields: list[str], raw: str, number: int, dialect: Dialect, *, is_both: bool = False
) -> None:
    """Count the quoted and unquoted fields of one record; `is_both` if its lines may be records too."""
    quote, place = str(dialect.quote), 0
    for column, text in enumerate(fields):
        is_quoted = raw.startswith(quote, place)
        if is_quoted:
            place += 2 + len(text) + text.count(quote)
            if text:  # Polars writes an empty string in quotes
                found.quoted_columns.add(column)
                if not (is_both and "\n" in text):
                    _count_quoted(found, text, number, dialect)
        else:
            place += len(text)
            if quote in text:
                found.bare += 1
                found.first_bare = found.first_bare or number
            found.comma_outside += "," in text
            if text.strip() and not _NUMBER.fullmatch(text):
                found.plain_columns.add(column)
        place += 1


def _count_quoted(found: Evidence, text: str, number: int, dialect: Dialect) -> None:
    if any(mark in text for mark in (dialect.separator, str(dialect.quote), "\n", "\r", RETURN)):
        found.needed += 1
        found.first_needed = found.first_needed or number
        return
    found.with_comma += "," in text
    found.free += "," not in text
    found.first_unneeded = found.first_unneeded or number


def is_quoted(path: str, plain_bad: int, quoted: Evidence, quote: str) -> bool:
    """Return whether the fields of TSV are quoted.

    Args:
        path: the file.
        plain_bad: number of lines with another number of fields than the header if quotes are ordinary characters.
        quoted: evidence with the quote character.
        quote: the quote character.

    Raises:
        SourceError: the evidence contradicts itself.
    """
    if quoted.bad > plain_bad:
        if quoted.is_quoted_throughout and quote == '"':
            raise SourceError(
                _ambiguous(
                    path,
                    f"line {quoted.first_unneeded} has a field in quotes, as all records that can be read so, but line "
                    f"{quoted.first_bad} cannot be read so",
                )
            )
        return False
    if quoted.bad + quoted.torn < plain_bad:
        return True
    if quoted.contradicts and quote == '"':
        raise SourceError(_ambiguous(path, _contradiction(quoted)))
    if quoted.fits and not quoted.is_clear and quote == '"':
        raise SourceError(
            _ambiguous(
                path,
                f"line {quoted.first_torn} begins a record of several lines, each of which is a record too if quotes "
                "are text",
            )
        )
    return quoted.fits and quoted.is_clear


def _contradiction(quoted: Evidence) -> str:
    against = (
        f"line {quoted.first_bare} has a quote inside a field without quotes"
        if quoted.bare
        else f"line {quoted.first_unneeded} has a field in quotes that needs none"
    )
    return (
        f"line {quoted.first_needed} has a field in quotes that contains a quote, a tab or a line break, but {against}"
    )


def _ambiguous(path: str, why: str) -> str:
    name = shlex.quote(path)
    stem = path[: -len(".tsv")] if path.lower().endswith(".tsv") else path
    target = shlex.quote(f"{stem}.quoted.csv")
    return (
        f"{path}: a quote may be part of the text or enclose a field ({why}). If quotes enclose fields, give the file "
        f"the suffix .csv: `cp {name} {target}`. If they are text, quote every field: "
        f'`sed \'s/\\r$//; s/"/""/g; s/[^\\t]*/"&"/g\' {name} > {target}`.'
    )
