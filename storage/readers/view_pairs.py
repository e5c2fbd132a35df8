"""Lines of a text and another way of saying it, parted by tabs, without a header: BSL's `back_translated_nli.txt`.

Further fields of a line are not read, as the authors' code does not read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from storage.readers.blocks import BLOCK_BYTES, line_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readers.columns import Columns
    from storage.readers.read_report import ReadReport

TEXT, VIEW = "text", "view"
COLUMNS: Final = (TEXT, VIEW)


def read(path: str, wanted: Columns, report: ReadReport, block_bytes: int = BLOCK_BYTES) -> Iterator[pl.DataFrame]:
    """Frames of the wanted columns; lines that are not UTF-8 or have one field are rejected."""
    for block in line_blocks(path, report, block_bytes):
        rows: list[list[str]] = []
        for number, line in enumerate(block.content.removesuffix(b"\n").split(b"\n"), block.first_line):
            fields = line.removesuffix(b"\r").split(b"\t")
            try:
                texts = [field.decode() for field in fields[: len(COLUMNS)]]
            except UnicodeDecodeError as error:
                report.reject(path, number, f"not UTF-8 ({error.reason})", line)
                continue
            if len(texts) < len(COLUMNS):
                report.reject(path, number, "1 field, expected 2 or more between tabs", line)
                continue
            rows.append(texts)
        report.records += len(rows)
        yield pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row").select(wanted.names)
