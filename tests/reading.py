"""Read whole sources in tests."""

import polars as pl

from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import format_of, read_table
from bsl.storage.readers.read_report import ReadReport


def table(path: str, wanted: Columns, report: ReadReport) -> pl.DataFrame:
    return pl.concat(read_table(path, format_of(path), wanted, report))


def texts(path: str, report: ReadReport, column: str = "text") -> list[str]:
    return table(path, Columns((column,)), report)[column].to_list()


def where(report: ReadReport) -> list[tuple[int, str]]:
    return [(record.line, record.reason) for record in report.bad]
