"""Plain text: one sentence per line, separated by line feeds alone (a carriage return at the end is white space)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl

from storage.readers.blocks import BLOCK_BYTES, Block, line_blocks, unpacked_by_polars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readers.columns import Columns
    from storage.readers.read_report import ReadReport

COLUMN = "text"


def read(path: str, wanted: Columns, report: ReadReport, block_bytes: int = BLOCK_BYTES) -> Iterator[pl.DataFrame]:
    """Frames of the column `text`, one row per line, empty ones included; lines that are not UTF-8 are rejected."""
    for block in line_blocks(path, report, block_bytes):
        frame = _fast(block)
        frame = _slow(block, path, report) if frame is None else frame
        report.records += frame.height
        yield frame.select(wanted.names)


def _fast(block: Block) -> pl.DataFrame | None:
    if unpacked_by_polars(block.content):
        return None
    try:
        return pl.read_lines(io.BytesIO(block.content), name=COLUMN)
    except pl.exceptions.ComputeError:  # not UTF-8; it does not say where
        return None


def _slow(block: Block, path: str, report: ReadReport) -> pl.DataFrame:
    texts = []
    for number, line in enumerate(block.content.removesuffix(b"\n").split(b"\n"), block.first_line):
        try:
            texts.append(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            report.reject(path, number, f"not UTF-8 ({error.reason} at byte {error.start})", line)
    return pl.DataFrame({COLUMN: texts}, schema={COLUMN: pl.String})
