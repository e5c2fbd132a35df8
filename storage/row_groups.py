"""Some rows of a Parquet file, by the groups that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from typing import BinaryIO


def rows_of_groups(file: BinaryIO, start: int, rows: int) -> pl.DataFrame:
    """Rows `start` to `start + rows`; of the file only its end and the groups with these rows are read."""
    parquet = pq.ParquetFile(file)
    groups, before, ahead = [], 0, 0
    for number in range(parquet.metadata.num_row_groups):
        size = parquet.metadata.row_group(number).num_rows
        if ahead + size <= start:
            before += size
        elif ahead < start + rows:
            groups.append(number)
        ahead += size
    return cast("pl.DataFrame", pl.from_arrow(parquet.read_row_groups(groups))).slice(start - before, rows)
