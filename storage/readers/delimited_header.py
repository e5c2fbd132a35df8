"""The first line of a CSV or TSV file: the names of its columns, and what parts its fields.

In CSV a field may be quoted; in TSV a quote is a character like any other. A CSV's fields are parted by commas, or by
what its header has instead of them: in much of Europe Excel writes semicolons, other programs tabs or bars.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError
from storage.readers.blocks import MAX_LINE_BYTES, Block
from storage.readers.columns import NAME_COLUMNS

if TYPE_CHECKING:
    import _csv
    from collections.abc import Iterable

LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_INSTEAD: Final = (";", "\t", "|")
_QUOTED: Final = re.compile('"[^"]*"')
_SENTENCE_END: Final = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
_NAME_WORDS: Final = 4  # and characters: what is longer is more likely a text than its name
_NAME_CHARS: Final = 40
_NUMBER: Final = re.compile(r"[-+]?[\d.,]*\d%?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*")  # dates too


@dataclass(frozen=True)
class Dialect:
    """How fields are told apart.

    Attributes:
        separator: one character.
        quoted: whether `"` encloses fields.
    """

    separator: str
    quoted: bool

    def reader(self, lines: Iterable[str]) -> _csv.Reader:
        """The csv module's reader of this dialect."""
        csv.field_size_limit(MAX_LINE_BYTES)  # the module's own limit is 128 KiB
        # Not strict, text after a closing quote is taken into the field, and a later quote swallows the next records.
        return csv.reader(
            lines,
            delimiter=self.separator,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            strict=True,
        )


CSV: Final = Dialect(",", quoted=True)
TSV: Final = Dialect("\t", quoted=False)


def read_header(path: str, block: Block, dialect: Dialect) -> tuple[tuple[str, ...], Dialect, Block]:
    """The names of a file's columns, its dialect and the lines after its header.

    Args:
        path: the file, for messages.
        block: its first lines.
        dialect: `CSV`, whose header may have another separator, or `TSV`.

    Raises:
        SourceError: it is not UTF-8, blank or badly quoted, has a carriage return within or names a column twice.
    """
    end = block.content.find(b"\n") + 1 or len(block.content)
    line = _decoded(path, block.content[:end])
    own = _own(line, dialect)
    try:
        names = tuple(name.strip() for name in next(own.reader([line]), []))
    except csv.Error as error:
        raise SourceError(
            f"{path}: the header cannot be read ({csv_fault(error, 1)}): {line[:100]!r}; quote its names in pairs"
        ) from error
    if not any(names):
        raise SourceError(f"{path}: line 1 is blank; expected a header with the names of the columns")
    if len(set(names)) < len(names):
        raise SourceError(
            f"{path}: the header names a column twice ({line.strip()!r}); give each a name of its own, or add a header "
            "line if this one is data"
        )
    return names, own, Block(block.content[end:], block.first_line + 1)


def require_names(path: str, sample: pl.DataFrame) -> None:
    """Check that the names of a file's columns are none of its data, as the first line of a file without a header is.

    Args:
        path: the file, for the message.
        sample: its first records.

    Raises:
        SourceError: with a name that reads like a text, is a number, or is one of the values in its column.
    """
    # pandas numbers the columns of a table without names, behind a blank name for the index.
    named = [name for name in sample.columns if name]
    if named == [str(number) for number in range(len(named))]:
        return
    for name in sample.columns:
        why = _why_no_name(name, sample)
        if why:
            lines = ", or name the file .txt, which is read a sentence a line" if sample.width == 1 else ""
            raise SourceError(
                f"{path}: line 1 would be taken as the header, but {name[:60]!r} {why}; expected a name such "
                f"as 'text'; add a header line{lines}; if it is the header, name the column of text {NAME_COLUMNS}"
            )


def _why_no_name(name: str, sample: pl.DataFrame) -> str:
    """Why a name is a value of the first record; empty if it may be a name."""
    if not _is_name(name):
        return "reads like a text"
    if _NUMBER.fullmatch(name):
        return "is a number or a date"
    # Where whole tables were joined, their header comes again; that it is a header is not in doubt.
    again = pl.all_horizontal(pl.col(other) == other for other in sample.columns)
    own = sample.filter(~again.fill_null(value=False))[name]
    return "is also a value in its column" if name and (own == name).any() else ""


def csv_fault(error: csv.Error, span: int) -> str:
    """What the csv module means by an error at a record of so many lines."""
    if "end of data" in str(error):
        return f"one record spans {span} lines, as if a quote were never closed"
    return "text follows a closing quote" if "expected after" in str(error) else str(error)


def _decoded(path: str, content: bytes) -> str:
    try:
        line = content.decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: the header is not UTF-8 ({error}); save the file as UTF-8") from error
    if LONE_RETURN.search(line):
        raise SourceError(
            f"{path}: the header has a carriage return within ({line[:40]!r}), as if lines ended in one alone; "
            "expected line feeds; save the file with Unix or Windows line ends"
        )
    return line


def _own(line: str, dialect: Dialect) -> Dialect:
    """The dialect with the separator that a CSV's header has outside quotes: its own, else the most frequent other."""
    outside = _QUOTED.sub("", line.rstrip())
    if dialect != CSV or dialect.separator in outside:
        return dialect
    most = max(_INSTEAD, key=outside.count)
    return replace(dialect, separator=most) if most in outside else dialect


def _is_name(text: str) -> bool:
    long = len(text.split()) > _NAME_WORDS or len(text) > _NAME_CHARS
    return not long and _SENTENCE_END.search(text) is None
