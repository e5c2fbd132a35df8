"""Clustering sets in MTEB's format: damaged and odd files are named."""

import io

import polars as pl
import pytest

from storage.errors import SourceError
from storage.readers.benchmarks.clustering import read_clusters

SETS = pl.DataFrame({"sentences": [["a b", "c"], ["d"]], "labels": [[1, 2], [3]]})


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_clustering_error_names_the_file_whichever_byte_is_damaged(tmp_path, suffix):
    buffer, path = io.BytesIO(), tmp_path / f"test.{suffix}"
    SETS.write_parquet(buffer) if suffix == "parquet" else SETS.write_ipc_stream(buffer)
    path.write_bytes(buffer.getvalue())
    assert read_clusters(str(path)).rows() == [("0", "a b", "1"), ("0", "c", "2"), ("1", "d", "3")]
    for place in range(len(buffer.getvalue())):
        damaged = bytearray(buffer.getvalue())
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_clusters(str(path))
        except SourceError as error:
            assert str(path) in str(error)  # noqa: PT017 - some bytes may change without anybody's noticing


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"text": ["a"]}, "found 1 sets and the columns text, expected MTEB's format, one set per row"),
        ({"sentences": [["a", "b"]], "labels": [["x"]]}, "set 1 has no list `sentences`"),
        ({"sentences": ["a"], "labels": ["x"]}, "a column has the wrong type"),
        ({"sentences": [["a"]], "labels": [[{"x": 1}]]}, "a column has the wrong type"),
    ],
)
def test_clustering_file_in_another_format_raises_source_error(tmp_path, columns, why):
    pl.DataFrame(columns).write_parquet(tmp_path / "test.parquet")
    with pytest.raises(SourceError, match=why):
        read_clusters(str(tmp_path / "test.parquet"))
