"""Columns that are copied beside the results of a file: joined over files, and as text for CSV and JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def as_text(table: pl.DataFrame, names: Collection[str] | None = None) -> pl.DataFrame:
    """Return a table with dates, times, datetimes and durations in ISO 8601, and decimals and categories as strings.

    Args:
        table: the table.
        names: the columns to change; None for all.
    """
    chosen = cs.all() if names is None else cs.by_name(*names)
    return table.with_columns(
        (chosen & cs.temporal()).dt.to_string("iso:strict"),
        (chosen & (cs.decimal() | cs.categorical() | cs.enum())).cast(pl.String),
    )


def joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of frames with equal names; dates and other non-numbers become text if types differ in kind."""
    kinds = {
        name: {_kind(frame.schema[name]) for frame in frames if frame.schema[name] != pl.Null}
        for name in frames[0].columns
    }
    unequal = [name for name, found in kinds.items() if len(found) > 1]
    return pl.concat([as_text(frame, unequal) for frame in frames], how="vertical_relaxed")


def _kind(dtype: pl.DataType) -> tuple[object, object]:
    """Return what differs between types that have no type in common: units and digits do not count."""
    return dtype.base_type(), dtype.time_zone if isinstance(dtype, pl.Datetime) else None
