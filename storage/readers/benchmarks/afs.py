"""Read Argument Facet Similarity in its authors' format: ArgPairs_{GC,GM,DP}.csv in a folder of the user.

ISO-8859-1, a header line, 11 columns; the first is the score from 0 to 5, the last two are the sentences.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPICS: Final = ("GC", "GM", "DP")  # gun control, gay marriage, death penalty
COLUMNS: Final = 11
LOW, HIGH = 0.0, 5.0
SCHEMA: Final = pl.Schema({"topic": pl.String, "score": pl.Float64, "sentence1": pl.String, "sentence2": pl.String})


def topic_file(folder: str, topic: str) -> str:
    """Return the path of a topic's file."""
    return f"{folder.rstrip('/')}/ArgPairs_{topic}.csv"


def read_afs(path: str) -> pl.DataFrame:
    """Return the pairs of a topic's file in order: `topic`, `score`, `sentence1`, `sentence2`.

    Raises:
        SourceError: the file is empty or not CSV, a record has another number of columns, a sentence is blank, or a
            score is not a number from 0 to 5; the message names the line.
    """
    topic = path.rpartition("_")[2].removesuffix(".csv")
    reader = csv.reader(io.StringIO(read_bytes(path).decode("iso-8859-1"), newline=""))
    try:
        next(reader, None)
        rows = [_row(path, reader.line_num, topic, record) for record in reader if record]
    except csv.Error as error:
        raise SourceError(f"{path}, line {reader.line_num}: {error}. Copy the file again.") from error
    if not rows:
        raise SourceError(f"{path} contains no pairs, expected a header line and one record per pair. Copy it again.")
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(path: str, line: int, topic: str, record: Sequence[str]) -> tuple[str, float, str, str]:
    if len(record) != COLUMNS:
        raise SourceError(
            f"{path}, line {line}: {len(record)} columns, expected {COLUMNS} (score first, sentences last). Use the "
            "authors' original file."
        )
    one, two = record[-2].strip(), record[-1].strip()
    if not one or not two:
        raise SourceError(f"{path}, line {line}: a sentence is blank, expected two. Correct or delete the record.")
    try:
        score = float(record[0])
    except ValueError:
        score = float("nan")
    if not LOW <= score <= HIGH:
        raise SourceError(
            f"{path}, line {line}: score {record[0]!r}, expected a number from {LOW:g} to {HIGH:g}. Correct the record."
        )
    return topic, score, one, two
