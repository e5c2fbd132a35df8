"""Some rows of a Parquet file, by the groups that hold them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path


def rows_of_groups(path: Path, start: int, rows: int) -> pl.DataFrame:
    """Return rows `start` to `start + rows` of a file that never changes under its name.

    Its footer is read once, then the groups with these rows alone.

    Raises:
        FileNotFoundError: it is not there any more.
    """
    metadata, ends = _footer(path)
    first, last = bisect_right(ends, start), bisect_left(ends, start + rows)
    with path.open("rb") as file:
        table = pq.ParquetFile(file, metadata=metadata).read_row_groups(list(range(first, min(last + 1, len(ends)))))
    return cast("pl.DataFrame", pl.from_arrow(table)).slice(start - (ends[first - 1] if first else 0), rows)


@lru_cache(maxsize=2)  # a plan has a group for each shard: a footer parsed for each takes the square of their number
def _footer(path: Path) -> tuple[pq.FileMetaData, list[int]]:
    """The file's metadata, and after which row each group ends."""
    metadata = pq.read_metadata(path)
    return metadata, list(accumulate(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)))
