"""Read plain text: one sentence per line, or a sentence and a paraphrase separated by a tab.

Only a line feed ends a line; a carriage return before it is removed. `view-pairs` is the format of BSL's
`back_translated_nli.txt`: no header, and further fields of a line are ignored, as in the authors' code.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import Block, line_blocks
from bsl.storage.readers.dialect import Dialect, misfits
from bsl.storage.readers.encodings import MOVE_OLD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.storage.readers.columns import Columns
    from bsl.storage.readers.read_report import ReadReport

COLUMN: Final = "text"
_TABLE_LINES: Final = 200  # lines that show whether a file is a table
_TABLE_SEPARATORS: Final = {"\t": 2, ";": 3, "|": 3, ",": 3}  # separator → least number of lines of a table
_NAME: Final = re.compile(r"[^\W\d][\w#-]*( [\w#-]+){0,2}|")  # a column name
_SUFFIX: Final = re.compile(r"\.[^./]*((?:\.(?:gz|zst|zip))?)$", re.IGNORECASE)  # group: that of a compression
VIEW_COLUMNS: Final = (COLUMN, "view")


def read(path: str, requested: Columns, report: ReadReport, *, encoding: str | None = None) -> Iterator[pl.DataFrame]:
    """Yield frames of the column `text`, one row per line, also for empty lines; non-UTF-8 lines are rejected.

    Raises:
        SourceError: the file is a table with tabs or other separators, or its lines end in carriage returns.
    """
    count = 0
    for block in line_blocks(path, report, encoding=encoding):
        try:
            texts = block.content.removesuffix(b"\n").decode().split("\n")
        except UnicodeDecodeError:
            texts = [text for _, text in _decoded(block, path, report)]
        if block.first_line == 1:
            if b"\n" not in block.content:
                _require_line_feeds(path, block.content)
            _require_no_table(path, texts)
        count += len(texts)
        report.records += len(texts)
        frame = pl.DataFrame({COLUMN: texts}, schema={COLUMN: pl.String})
        yield frame.select(pl.col(name).str.strip_suffix("\r") for name in requested.names)
    if count == 1:  # perhaps with a line feed at the end of the file
        _require_line_feeds(path, block.content)


def _require_line_feeds(path: str, line: bytes) -> None:
    """Refuse a file of one line with carriage returns in it: it would be one text, dropped if it is too long."""
    if b"\r" in line.rstrip(b"\r\n"):
        raise SourceError(
            f"{path}: no line feed between lines, but carriage returns; expected line feeds. Save the file with Unix "
            "or Windows line endings."
        )


def _require_no_table(path: str, texts: list[str]) -> None:
    """Refuse a table: as many separators in all of the first lines, and short names or a tab in the first.

    Raises:
        SourceError: names the separator and the remedy.
    """
    lines = [text.removesuffix("\r") for text in texts[:_TABLE_LINES] if text.strip()]
    if len(lines) < 2:
        return
    for separator, fewest in _TABLE_SEPARATORS.items():
        dialect = Dialect(separator, '"')
        count = len(lines[0].split(separator))
        if count < 2 or len(lines) < fewest or misfits(lines[0] + "\n", [f"{line}\n" for line in lines[1:]], dialect):
            continue
        has_names = all(_NAME.fullmatch(name.strip(' "')) for name in lines[0].split(separator))
        if not has_names and separator != "\t":
            continue
        suffix, name = "tsv" if separator == "\t" else "csv", shlex.quote(path)
        target = shlex.quote(_SUFFIX.sub(rf".{suffix}\1", path))
        headed = f"Give it the suffix .{suffix}: `mv {name} {target}`."
        bare = f"Write the column with text to a new file, for example `cut -f {count} {name} > text.txt`. {MOVE_OLD}"
        raise SourceError(
            f"{path}: a table of {count} columns separated by {separator!r}, expected one text per line. "
            f"{headed if has_names else bare}"
        )


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
