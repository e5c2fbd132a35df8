"""Each shard reads its own sentences, also on another machine."""

import pickle

import polars as pl

from bsl.tasks.stage.shards import write_shards


def test_shard_reads_its_rows_from_file_or_pickle(tmp_path):
    whole = pl.DataFrame({"sentence_id": range(7), "text": [f"Mening {number} är lång." for number in range(7)]})
    whole = whole.cast({"sentence_id": pl.UInt64})
    frames = [whole[:3], whole[3:3], whole[3:7]]
    shards = write_shards(frames, tmp_path)
    assert [(shard.start, shard.rows) for shard in shards] == [(0, 3), (3, 0), (3, 4)]
    assert all(shard.read().equals(frame) for shard, frame in zip(shards, frames, strict=True))
    sent = pickle.dumps(shards)
    for path in tmp_path.iterdir():
        path.unlink()
    assert all(shard.read().equals(frame) for shard, frame in zip(pickle.loads(sent), frames, strict=True))
