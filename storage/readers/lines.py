"""Read plain text: one sentence per line, or a sentence and a paraphrase separated by a tab.

Only a line feed ends a line; a carriage return before it is removed. `view-pairs` is the format of BSL's
`back_translated_nli.txt`: no header, and further fields of a line are ignored, as in the authors' code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from storage.readers.blocks import Block, line_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readers.columns import Columns
    from storage.readers.read_report import ReadReport

COLUMN: Final = "text"
VIEW_COLUMNS: Final = (COLUMN, "view")


def read(path: str, requested: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield frames of the column `text`, one row per line, also for empty lines; non-UTF-8 lines are rejected."""
    for block in line_blocks(path, report):
        try:
            texts = block.content.removesuffix(b"\n").decode().split("\n")
        except UnicodeDecodeError:
            texts = [text for _, text in _decoded(block, path, report)]
        report.records += len(texts)
        frame = pl.DataFrame({COLUMN: texts}, schema={COLUMN: pl.String})
        yield frame.select(pl.col(name).str.strip_suffix("\r") for name in requested.names)


def read_view_pairs(path: str, requested: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield frames of the requested columns; lines that are not UTF-8 or have only one field are rejected."""
    for block in line_blocks(path, report):
        rows = []
        for number, line in _decoded(block, path, report):
            fields = line.removesuffix("\r").split("\t")[: len(VIEW_COLUMNS)]
            if len(fields) == len(VIEW_COLUMNS):
                rows.append(fields)
            else:
                report.reject(path, number, "1 field, expected at least 2, separated by tabs", line.encode())
        report.records += len(rows)
        yield pl.DataFrame(rows, schema=dict.fromkeys(VIEW_COLUMNS, pl.String), orient="row").select(requested.names)


def _decoded(block: Block, path: str, report: ReadReport) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; lines that are not UTF-8 are rejected."""
    for number, line in enumerate(block.content.removesuffix(b"\n").split(b"\n"), block.first_line):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            report.reject(path, number, f"not UTF-8 ({error.reason} at byte {error.start})", line)
