"""Some rows of a Parquet file, by the groups that hold them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


def rows_of_groups(files: AbstractFileSystem, path: str, start: int, rows: int) -> pl.DataFrame:
    """Rows `start` to `start + rows` of a file that never changes under its name.

    Its end is read once, then the groups with these rows alone.

    Raises:
        FileNotFoundError: it is not there any more.
    """
    metadata, ends = _ends(files, path)
    first, last = bisect_right(ends, start), bisect_left(ends, start + rows)
    with files.open(path, "rb") as file:
        groups = list(range(first, min(last + 1, len(ends))))
        table = pq.ParquetFile(file, metadata=metadata).read_row_groups(groups)
    return cast("pl.DataFrame", pl.from_arrow(table)).slice(start - (ends[first - 1] if first else 0), rows)


@lru_cache(maxsize=2)  # a worker does many shards of a plan: to parse the end of 10,000 took half of its time
def _ends(files: AbstractFileSystem, path: str) -> tuple[pq.FileMetaData, list[int]]:
    """What the file's end says, and after which row each group ends."""
    with files.open(path, "rb") as file:
        metadata = pq.read_metadata(file)
    return metadata, list(accumulate(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)))
