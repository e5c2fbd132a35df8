"""Read clustering sets in MTEB's format: one record per set, with a list of texts and a list of their labels."""

from __future__ import annotations

from typing import Final, cast

import polars as pl
import pyarrow as pa

from storage.errors import SourceError
from storage.readers.blocks import read_bytes
from storage.readers.parquet import damage_named

CLUSTERS: Final = pl.Schema({"subset": pl.String, "text": pl.String, "label": pl.String})
"""A text, its set (numbered from 0) and its group."""
_LISTS: Final = ("sentences", "labels")


def read_clusters(path: str) -> pl.DataFrame:
    """Return `CLUSTERS` from a Parquet or Arrow file, in MTEB's format or with the columns of `CLUSTERS`.

    Raises:
        SourceError: it has another form, or the numbers of labels and texts in a set differ.
    """
    table = _table(path)
    if set(CLUSTERS) <= set(table.columns):
        return table.select(CLUSTERS.names()).cast(CLUSTERS)
    if not set(_LISTS) <= set(table.columns) or table.is_empty():
        raise _odd(path, f"it has {table.height} sets and the columns {', '.join(table.columns)}")
    sets = table.select(pl.col(_LISTS).cast(pl.List(pl.String))).with_row_index("subset")
    texts, labels = (pl.col(name).list.len() for name in _LISTS)
    broken = sets.filter(((texts == labels) & (texts > 0)).fill_null(value=False).not_())
    if broken.height:
        number = broken["subset"][0] + 1
        raise _odd(path, f"set {number} has no list `sentences` with a list `labels` of the same length")
    return sets.explode(*_LISTS).rename(dict(zip(_LISTS, ("text", "label"), strict=True))).cast(CLUSTERS)


def _table(path: str) -> pl.DataFrame:
    content = read_bytes(path)
    with damage_named(path):
        if path.endswith(".arrow"):
            return cast("pl.DataFrame", pl.from_arrow(pa.ipc.open_stream(content).read_all()))
        return pl.read_parquet(content)


def _odd(path: str, found: str) -> SourceError:
    return SourceError(f"{path}: {found}; expected a set a line as MTEB has it; copy the file again")
