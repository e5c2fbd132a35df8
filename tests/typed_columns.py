"""A Parquet file with columns of all types that are copied beside results, and their ISO text."""

import datetime as dt
from decimal import Decimal

import polars as pl

MOMENT = dt.datetime.fromisoformat("2024-01-02T03:04:05")
COLUMNS = {  # name → a value, its type, its text
    "date": (MOMENT.date(), pl.Date(), "2024-01-02"),
    "time": (MOMENT.time(), pl.Time(), "03:04:05"),
    "naive": (MOMENT, pl.Datetime("ms"), "2024-01-02T03:04:05.000"),
    "zoned": (MOMENT.replace(tzinfo=dt.UTC), pl.Datetime("us", "UTC"), "2024-01-02T03:04:05.000000+00:00"),
    "duration": (dt.timedelta(days=1, seconds=5), pl.Duration("us"), "P1DT5S"),
    "price": (Decimal("1.50"), pl.Decimal(10, 2), "1.50"),
    "kind": ("a", pl.Categorical(), "a"),
}


def write_typed(path, texts):
    """Write a column `body` of two texts beside typed columns, whose second value is null, and two that are not copied.

    Returns:
        The copied columns, and the same as strings.
    """
    typed = pl.DataFrame([pl.Series(name, [value, None], dtype) for name, (value, dtype, _) in COLUMNS.items()])
    rest = {"raw": [b"a", b"b"], "tags": [["a"], ["b", "c"]]}
    typed.with_columns(body=texts).with_columns(pl.Series(name, values) for name, values in rest.items()).write_parquet(
        path
    )
    return typed, pl.DataFrame({name: [text, None] for name, (_, _, text) in COLUMNS.items()})
