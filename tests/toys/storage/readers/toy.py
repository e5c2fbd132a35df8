"""Format `toy`: a line is `premise ~ hypothesis ~ label`."""

from collections.abc import Iterator

import polars as pl

from bsl.storage.readers.blocks import line_blocks
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.read_report import ReadReport

NAMES = ("premise", "hypothesis", "label")


def columns(path: str) -> tuple[str, ...]:
    return NAMES


def read(path: str, requested: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    for block in line_blocks(path, report):
        rows = [line.split(" ~ ") for line in block.content.decode().splitlines()]
        report.records += len(rows)
        yield pl.DataFrame(rows, schema=dict.fromkeys(NAMES, pl.String), orient="row").select(requested.names)
