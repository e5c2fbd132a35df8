"""Find the columns of text in a file, from its first records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError
from storage.readers.columns import Columns
from storage.readers.formats import read_table, readable_columns
from storage.readers.read_report import ReadReport

if TYPE_CHECKING:
    from storage.readers.formats import Format

SAMPLE: Final = 200  # records used for a guess
PROSE_WORDS: Final = 3.0  # a text column has more words per record
_PROSE_UNIQUE: Final = 0.2
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNSPACED: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]")  # Thai, Japanese, Chinese


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


def first_records(path: str, kind: Format) -> pl.DataFrame:
    """Return the first records of a file, with all columns that can be read as strings.

    Raises:
        SourceError: the file has no records, or cannot be read.
    """
    columns, report = readable_columns(path, kind), ReadReport(path)
    first = next(read_table(path, kind, Columns((), columns), report), None)
    if first is None or first.is_empty():
        if report.rejected:
            report.check(0.0)  # raises an error that lists the first unreadable lines
        raise SourceError(f"{path} contains no record; give a file with at least one, or leave it out")
    strings = [name for name, dtype in first.schema.items() if not dtype.is_nested()]
    return first.head(SAMPLE if kind != "txt" else 50 * SAMPLE).select(pl.col(strings).cast(pl.String))
