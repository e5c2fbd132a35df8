"""Reading rows of a Parquet file by row groups."""

import polars as pl
import pyarrow.parquet as pq

from storage.readers.parquet import rows_of_groups


def test_any_rows_are_those_of_the_whole_table(tmp_path):
    whole = pl.DataFrame({"id": range(11), "text": [f"sentence {number}" for number in range(11)]})
    pq.write_table(whole.to_arrow(), tmp_path / "plan.parquet", row_group_size=3)
    for start in range(11):
        for rows in range(1, 13 - start):
            assert rows_of_groups(tmp_path / "plan.parquet", start, rows).equals(whole.slice(start, rows))


def test_the_end_of_a_file_is_read_once(tmp_path):
    """The footer lists all row groups; reading it for each shard would take quadratic time."""
    path = tmp_path / "plan.parquet"
    pq.write_table(pl.DataFrame({"id": range(9)}).to_arrow(), path, row_group_size=3)
    first = rows_of_groups(path, 0, 3)
    with path.open("rb+") as file:
        file.seek(-8, 2)
        file.write(b"\0" * 8)
    assert first["id"].to_list() == [0, 1, 2]
    assert rows_of_groups(path, 6, 3)["id"].to_list() == [6, 7, 8]
