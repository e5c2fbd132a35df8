"""Sets of texts with the group of each, as MTEB distributes them: an object a set, two lists in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from storage.errors import SourceError
from storage.readers import arrow
from storage.readers.blocks import open_bytes
from storage.readers.parquet import load_errors
from storage.readers.read_report import ReadReport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.readers.columns import Columns

CLUSTERS: Final = pl.Schema({"subset": pl.String, "text": pl.String, "label": pl.String})
"""A text, the set that it is in and the group that it belongs to; sets are numbered from 0."""
_LISTS: Final = ("sentences", "labels")


def read_clusters(path: str) -> pl.DataFrame:
    """`CLUSTERS` of a file, JSON lines or Parquet, in MTEB's two lists a set or in the house's own columns.

    Raises:
        SourceError: it has another form, or a set has not as many labels as texts.
    """
    if path.endswith(".arrow"):
        records = _known_form(cast("pl.DataFrame", pl.from_arrow(list(arrow.tables(path)))), path)
    else:
        with open_bytes(path, ReadReport(path)) as (content, _):
            records = _parquet(content.read(), path) if path.endswith(".parquet") else _json_lines(content.read(), path)
    if isinstance(records, pl.DataFrame):
        return records
    rows: list[tuple[str, str, str]] = []
    for number, record in enumerate(records):
        texts, labels = (record.get(name) for name in _LISTS)
        if not isinstance(texts, list) or not isinstance(labels, list) or len(texts) != len(labels) or not texts:
            raise _odd(path, f"set {number + 1} has no list `sentences` with a list `labels` of the same length")
        rows += [(str(number), str(text), str(label)) for text, label in zip(texts, labels, strict=True)]
    if not rows:
        raise _odd(path, "it holds no set")
    return pl.DataFrame(rows, schema=CLUSTERS, orient="row")


def columns(path: str, report: ReadReport) -> tuple[str, ...]:  # noqa: ARG001 - the same for every file
    """What stands for a header of a source of sentences."""
    return ("text",)


def read(path: str, wanted: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """The texts of a file, as a source of sentences.

    Raises:
        SourceError: as `read_clusters`.
    """
    texts = read_clusters(path)
    report.records += texts.height
    yield texts.select(wanted.names)


def _json_lines(content: bytes, path: str) -> list[dict[str, Any]]:
    try:
        records = [json.loads(line) for line in content.decode().split("\n") if line.strip()]
    except ValueError as error:
        raise _odd(path, f"it is no JSON lines ({error})") from error
    if not all(isinstance(record, dict) for record in records):
        raise _odd(path, "a line is no object")
    return records


def _parquet(content: bytes, path: str) -> pl.DataFrame | list[dict[str, Any]]:
    with load_errors(path):
        table = pl.read_parquet(content)
    return _known_form(table, path)


def _known_form(table: pl.DataFrame, path: str) -> pl.DataFrame | list[dict[str, Any]]:
    if set(CLUSTERS) <= set(table.columns):
        return table.select(CLUSTERS.names()).cast(CLUSTERS)
    if not set(_LISTS) <= set(table.columns):
        raise _odd(path, f"it has the columns {', '.join(table.columns)}")
    return table.select(_LISTS).to_dicts()


def _odd(path: str, found: str) -> SourceError:
    return SourceError(f"{path}: {found}; expected a set a line as MTEB has it; copy the file again")
