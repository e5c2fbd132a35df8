"""Guess the text columns of a file, and whether its header is data, from the first records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.csv import UNNAMED
from bsl.storage.readers.formats import FORMATS, columns_of, read_table
from bsl.storage.readers.read_report import NAME_COLUMNS, ReadReport

if TYPE_CHECKING:
    from bsl.storage.readers.formats import Format

SAMPLE: Final = 200  # records used for a guess
PROSE_WORDS: Final = 3.0  # mean words per record; a text column has more
_PROSE_UNIQUE: Final = 0.2
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNSPACED: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]")  # Thai, Japanese, Chinese
_SENTENCE_END: Final = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
_NAME_WORDS: Final = 4  # words of a column name; a longer name is more likely data
_NAME_CHARS: Final = 40
_NUMBER: Final = re.compile(r"[-+]?[\d.,]*\d%?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*")  # also dates


def is_prose(values: pl.Series) -> bool:
    """Return whether strings are prose: several words of letters per string, with few repeated strings."""
    texts = [text for text in (value.strip() for value in values.drop_nulls()) if text]
    if not texts or len(set(texts)) < _PROSE_UNIQUE * len(texts):
        return False
    chars = sum(map(len, texts))
    letters = sum(len(_LETTER.findall(text)) for text in texts) / chars
    words = sum(len(text.split()) for text in texts) / len(texts)
    unspaced = sum(len(_UNSPACED.findall(text)) for text in texts) > chars / 2
    return letters > 0.5 and (unspaced or words > PROSE_WORDS)


def first_records(path: str, kind: Format, *, encoding: str | None = None) -> pl.DataFrame:
    """Return the first records of a file, with all columns that can be read as strings.

    Raises:
        SourceError: the file has no records, or cannot be read.
    """
    return _first(path, kind, Columns((), columns_of(path, kind, readable=True, encoding=encoding)), encoding)


def check_texts(path: str, kind: Format, texts: tuple[str, ...], *, encoding: str | None = None) -> None:
    """Check that some of the first records of a file have a string in each text column.

    Raises:
        SourceError: a column has other values, or the file cannot be read.
    """
    _first(path, kind, Columns(texts), encoding)


def _first(path: str, kind: Format, columns: Columns, encoding: str | None) -> pl.DataFrame:
    report = ReadReport(path)
    if not columns.names:  # no column can be text, and the caller's error names all columns
        return pl.DataFrame()
    first = next(read_table(path, kind, columns, report, encoding=encoding), pl.DataFrame())
    is_guess = not columns.texts  # for which some records are too few; `max_bad_share` may allow them
    if first.is_empty() or (is_guess and report.rejected > report.records):
        report.check(max_bad_share=0.0)  # raises an error: no records, or the first unreadable lines
    return first.head(SAMPLE if kind != "txt" else 50 * SAMPLE).cast(pl.String)


def require_header(path: str, kind: Format, sample: pl.DataFrame, remedy: str = NAME_COLUMNS) -> None:
    """Refuse a first line that is data instead of a header, in formats with a header, by the first records.

    `remedy` says how to name the text column.

    Raises:
        SourceError: a name looks like text, is a number, or is also a value in its column.
    """
    # pandas numbers the columns of a table without names, after a blank name for the index.
    named = [name for name in sample.columns if name and not name.startswith(UNNAMED)]
    if not FORMATS[kind].headed or named == [str(number) for number in range(len(named))]:
        return
    for name in sample.columns:
        why = _why_no_name(name, sample)
        if why:
            lines = ", or give the file the suffix .txt to read one sentence per line" if sample.width == 1 else ""
            raise SourceError(
                f"{path}: line 1 should be a header, but {name[:60]!r} {why}, expected a column name such as 'text'. "
                f"Add a header line{lines}. If line 1 is the header, name the text column {remedy}."
            )


def _why_no_name(name: str, sample: pl.DataFrame) -> str:
    """Return why a name is data and not a column name; empty if it may be a name."""
    if len(name.split()) > _NAME_WORDS or len(name) > _NAME_CHARS or _SENTENCE_END.search(name):
        return "looks like text"
    if _NUMBER.fullmatch(name):
        return "is a number or a date"
    # In concatenated tables the header appears again as a record, which does not make it data.
    again = pl.all_horizontal(pl.col(other) == other for other in sample.columns)
    different = sample.filter(~again.fill_null(value=False))[name]
    return "is also a value in its column" if name and (different == name).any() else ""
