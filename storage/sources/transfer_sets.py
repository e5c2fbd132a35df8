"""SentEval's transfer sets as tables of texts and class numbers, whether from a table or from SentEval's files.

A row without words comes first in the order that decides the folds; rows of equal length stand as in SentEval's file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from storage.datasets.registry import DATASETS, require_rows
from storage.errors import SourceError
from storage.readers.benchmarks.senteval import TRANSFER_SETS
from storage.readers.columns import Columns
from storage.readers.read_report import ReadReport
from storage.sources.read import read_columns, source_columns

if TYPE_CHECKING:
    from storage.sources.sources import ResolvedSource

CLASS = "class"


def read_transfer_table(name: str, split: str, source: ResolvedSource) -> pl.DataFrame:
    """A split: its texts ("" where SentEval's file has a blank line), and `class` (Int64).

    Raises:
        SourceError: a column is missing, a line has another form, a label is none of the set's, or the rows are not as
            many as papers count.
    """
    report = ReadReport(f"{name} {split}")
    label, order = TRANSFER_SETS[name].label, DATASETS[name].order
    placed = (order,) if order in source_columns(source) else ()
    frames = list(read_columns(source, Columns(DATASETS[name].texts, (label, *placed)), report))
    table = pl.concat(frames).sort(placed) if placed else pl.concat(frames)
    return _checked(name, split, table.with_columns(pl.col(label).cast(pl.String)).rename({label: CLASS}))


def _checked(name: str, split: str, table: pl.DataFrame) -> pl.DataFrame:
    require_rows(name, split, table.height)
    classes = TRANSFER_SETS[name].classes
    number = pl.col(CLASS).replace_strict(list(classes), list(range(len(classes))), default=None, return_dtype=pl.Int64)
    numbered = table.select(*DATASETS[name].texts, number)
    unknown = numbered[CLASS].is_null().arg_true()
    if len(unknown):
        row = int(unknown[0])
        raise SourceError(
            f"{name} {split}: row {row + 1} has the label {table[CLASS][row]!r}, expected one of "
            f"{', '.join(classes)}; correct it, or name the right column"
        )
    return numbered
