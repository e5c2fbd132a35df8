"""Partitions by id ranges yield every row once and in order, with any memory limit."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.runtime.partitions import RANGE_ROWS, Partitions, bits_for, equal_frames, in_range

SCHEMA = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String})


def rows(count):
    ids = np.random.default_rng(1).integers(0, 2**64, count, dtype=np.uint64, endpoint=False)
    return pl.DataFrame({"sentence_id": ids, "text": [f"s{n}" for n in range(count)]}, schema=SCHEMA)


@pytest.mark.parametrize("memory_bytes", [1 << 30, 4000, 1], ids=["in memory", "spilled", "all spilled"])
@pytest.mark.parametrize("bits", [0, 3])
def test_concatenated_partitions_equal_the_sorted_table(tmp_path, bits, memory_bytes):
    table = rows(500)
    parts = Partitions(tmp_path, SCHEMA, bits=bits, memory_bytes=memory_bytes)
    for lot in table.iter_slices(60):
        parts.add(lot)
    assert len(list(parts)) == len(parts) == 1 << bits
    assert_frame_equal(pl.concat(parts), table.sort("sentence_id"))
    for number, part in enumerate(parts):
        assert_frame_equal(part, in_range(table.lazy(), number, bits).sort("sentence_id").collect())
    more = rows(7).with_columns(pl.col("sentence_id") ^ 1)
    parts.add(more)
    assert_frame_equal(pl.concat(parts), pl.concat([table, more]).sort("sentence_id"))
    with pytest.raises(IndexError, match=f"expected 0 to {(1 << bits) - 1}"):
        parts[1 << bits]


def test_ranges_cover_the_smallest_and_largest_id_and_may_be_empty(tmp_path):
    assert [part.schema for part in Partitions(tmp_path, SCHEMA, bits=1)] == [SCHEMA, SCHEMA]
    ends = pl.LazyFrame({"sentence_id": [0, 2**63 - 1, 2**63, 2**64 - 1]}, schema={"sentence_id": pl.UInt64})
    assert in_range(ends, 0, 1).collect()["sentence_id"].to_list() == [0, 2**63 - 1]
    assert in_range(ends, 1, 1).collect()["sentence_id"].to_list() == [2**63, 2**64 - 1]
    assert in_range(ends, 0, 0).collect().height == 4


def test_bits_for_grows_with_rows_up_to_the_maximum():
    assert [bits_for(n) for n in (0, 1, RANGE_ROWS, RANGE_ROWS + 1, 20_000_000, 10**12)] == [0, 0, 0, 1, 7, 9]


def test_equal_frames_split_all_rows_into_equal_sizes():
    lots = list(equal_frames([rows(5), rows(0), rows(9)], 4))
    assert [lot.height for lot in lots] == [4, 4, 4, 2]
    assert_frame_equal(pl.concat(lots), pl.concat([rows(5), rows(9)]))
