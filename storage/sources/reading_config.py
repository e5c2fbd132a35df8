"""Settings of reading the user's text, separate from the code that reads it: help of commands imports no Polars."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from bsl.storage.readers.encodings import Encoding
from bsl.storage.record import Record

FORMATS: Final = "txt, csv, tsv, jsonl, parquet, arrow"
"""Formats of files that have a suffix, for help."""
TEXT_FORMS: Final = f"files ({FORMATS}), folders, patterns with *, or datasets"
"""Forms of the user's text, for help."""


class ReadingConfig(Record):
    """Columns of the user's files, to overrule the guess, and the language of the text."""

    columns: tuple[str, ...] = ()
    """Columns with text; by default guessed."""
    title: str | None = None
    """Column with titles, '' for none; by default guessed."""
    document: str | None = None
    """Column with the same value in all rows of a document, writer or customer, '' for none (by default guessed for
    text); labelled rows with the same value are all training or all test labels. A column of sources holds out complete
    sources. The bootstrap draws labelled rows with the same value together."""
    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """ISO 639 code of the text, for example `de`."""
    encoding: Encoding | None = None
    """Encoding of the files that are not UTF-8, for example `cp1252`."""
