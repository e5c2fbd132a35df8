"""Format `toy`: a line is `premise ~ hypothesis ~ label`."""

from collections.abc import Iterator

import fsspec
import polars as pl

from bsl.storage.readers.columns import Columns
from bsl.storage.readers.read_report import ReadReport

NAMES = ("premise", "hypothesis", "label")


def columns(path: str) -> tuple[str, ...]:
    return NAMES


def read(path: str, wanted: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    with fsspec.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" ~ ") for line in file]
    report.records += len(rows)
    yield pl.DataFrame(rows, schema=dict.fromkeys(NAMES, pl.String), orient="row").select(wanted.names)
