"""Read clustering sets in MTEB's format: one record per set, with a list of texts and a list of their labels."""

from __future__ import annotations

from typing import Final, cast

import polars as pl
import pyarrow as pa

from storage.errors import SourceError
from storage.readers.blocks import open_bytes
from storage.readers.parquet import Kind, batches_of, explain_damage

CLUSTERS: Final = pl.Schema({"subset": pl.String, "text": pl.String, "label": pl.String})
"""A text, its set (numbered from 0) and its group."""
_LISTS: Final = ("sentences", "labels")
_TYPES: Final = dict.fromkeys(CLUSTERS, pa.string()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))


def read_clusters(path: str) -> pl.DataFrame:
    """Return the table `CLUSTERS` of a Parquet or Arrow file in MTEB's format, or with the columns of `CLUSTERS`.

    Raises:
        SourceError: the format differs, or the numbers of labels and texts in a set differ.
    """
    table = _table(path)
    if set(CLUSTERS) <= set(table.columns):
        return table.select(CLUSTERS.names())
    sets = table.select(_LISTS).with_row_index("subset")
    texts, labels = (pl.col(name).list.len() for name in _LISTS)
    broken = sets.filter(((texts == labels) & (texts > 0)).fill_null(value=False).not_())
    if broken.height:
        number = broken["subset"][0] + 1
        raise _odd(path, f"set {number} has no list `sentences` with a list `labels` of the same length")
    return sets.explode(*_LISTS).rename(dict(zip(_LISTS, ("text", "label"), strict=True))).cast(CLUSTERS)


def _table(path: str) -> pl.DataFrame:
    """Return the known columns of a file as strings; Arrow checks them, because damaged values make Polars crash."""
    kind: Kind = "Arrow" if path.endswith(".arrow") else "Parquet"
    with open_bytes(path) as (stream, _), explain_damage(path, kind):
        schema, batches = batches_of(path, stream, kind)
        table = pa.Table.from_batches(batches, schema)
        names = table.column_names
        known = table.select([name for name in names if name in _TYPES])
        known.validate(full=True)
    if known.num_rows == 0 or not any(set(form) <= set(names) for form in (CLUSTERS, _LISTS)):
        raise _odd(path, f"found {known.num_rows} sets and the columns {', '.join(names)}")
    try:
        plain = known.cast(pa.schema([(name, _TYPES[name]) for name in known.column_names]))
    except pa.ArrowException as error:
        raise _odd(path, f"a column has the wrong type ({error})") from error
    return cast("pl.DataFrame", pl.from_arrow(plain))


def _odd(path: str, found: str) -> SourceError:
    return SourceError(f"{path}: {found}, expected MTEB's format, one set per row. Copy the file again.")
