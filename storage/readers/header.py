"""The first line of a CSV or TSV file: the names of its columns, and what parts its fields.

In CSV a field may be quoted; in TSV a quote is a character like any other. A CSV's fields are parted by commas, or by
what its header has instead of them: in much of Europe Excel writes semicolons, other programs tabs or bars.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from storage.errors import SourceError
from storage.readers.blocks import MAX_LINE_BYTES, Block
from storage.readers.columns import NAME_COLUMNS

if TYPE_CHECKING:
    import _csv
    from collections.abc import Iterator, Sequence

LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_INSTEAD: Final = (";", "\t", "|")
_QUOTED: Final = re.compile('"[^"]*"')
_SENTENCE_END: Final = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
_NAME_WORDS: Final = 4  # and characters: what is longer is more likely a text than its name
_NAME_CHARS: Final = 40


@dataclass(frozen=True)
class Dialect:
    """How fields are told apart.

    Attributes:
        separator: one character.
        quoted: whether `"` encloses fields.
    """

    separator: str
    quoted: bool

    def reader(self, lines: Iterator[str]) -> _csv.Reader:
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


@dataclass(frozen=True)
class Header:
    """What the first line says.

    Attributes:
        names: of the columns.
        dialect: how the fields of this file are told apart.
        body: the lines after it.
    """

    names: tuple[str, ...]
    dialect: Dialect
    body: Block


def read_header(path: str, block: Block, dialect: Dialect) -> Header:
    """The header of a file whose first lines are in `block`.

    Raises:
        SourceError: it is not UTF-8, blank or badly quoted, has a carriage return within or names a column twice.
    """
    end = block.content.find(b"\n") + 1 or len(block.content)
    line = _decoded(path, block.content[:end])
    own = _own(line, dialect)
    try:
        names = tuple(name.strip() for name in next(own.reader(iter([line])), []))
    except csv.Error as error:
        raise SourceError(
            f"{path}: the header cannot be read ({told(error, 1)}): {line[:100]!r}; quote its names in pairs"
        ) from error
    if not any(names):
        raise SourceError(f"{path}: line 1 is blank; expected a header with the names of the columns")
    if len(set(names)) < len(names):
        raise SourceError(f"{path}: the header names a column twice ({line.strip()!r}); give each a name of its own")
    return Header(names, own, Block(block.content[end:], block.first_line + 1))


def require_names(path: str, names: Sequence[str]) -> None:
    """Check that a header does not read like a text, as the first line of a file without a header does.

    Raises:
        SourceError: with the one that does.
    """
    text = next((name for name in names if not _is_name(name)), None)
    if text is not None:
        lines = ", or name the file .txt, which is read a sentence a line" if len(names) == 1 else ""
        raise SourceError(
            f"{path}: line 1 would be taken as the header, but {text[:60]!r} reads like a text; expected a name such "
            f"as 'text'; add a header line{lines}; if it is the header, name the column of text {NAME_COLUMNS}"
        )


def told(error: csv.Error, span: int) -> str:
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
