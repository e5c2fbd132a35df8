"""Pairs as tokens on disk: the ids of the tokenizer, in any chunks, written once."""

import numpy as np
import polars as pl
import pytest

from models.errors import TrainingError
from models.training import token_file
from models.training.token_file import open_token_file
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, tiny_encoder

PAIRS = pl.DataFrame({"text_1": ORIGINALS + BACK_DE + ORIGINALS, "text_2": BACK_DE + BACK_FR + BACK_FR, "pair_id": 1})


@pytest.fixture
def tokenizer(tmp_path):
    return tiny_encoder(tmp_path / "model")[1]


@pytest.mark.parametrize("chunk", [1, 5, 50_000])
def test_rows_are_the_tokens_of_both_views(tokenizer, tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(token_file, "CHUNK", chunk)
    # A file of several row groups, as parts of an artifact are.
    PAIRS.write_parquet(tmp_path / "pairs.parquet", row_group_size=3)
    data = open_token_file(tmp_path, pl.scan_parquet(tmp_path / "pairs.parquet"), tokenizer, 24)
    assert len(data) == 12
    rows = np.array([7, 0, 11, 7])
    batch = data.take(rows)
    for view, column in ((batch.view_1, "text_1"), (batch.view_2, "text_2")):
        for number, row in zip(view, rows, strict=True):
            start, end = batch.tokens.offsets[number : number + 2]
            assert batch.tokens.ids[start:end].tolist() == tokenizer(PAIRS[column][int(row)])["input_ids"]
    together = batch.tokens.lengths_of(batch.view_1) + batch.tokens.lengths_of(batch.view_2)
    np.testing.assert_array_equal(data.lengths_of(rows), together)


def test_the_file_is_written_once_and_anew_for_other_content(tokenizer, tmp_path):
    first = open_token_file(tmp_path, PAIRS.lazy(), tokenizer, 24)
    path = next(tmp_path.glob("tokens-*.arrow"))
    written = path.stat().st_mtime_ns
    assert open_token_file(tmp_path, PAIRS.lazy(), tokenizer, 24).digest == first.digest
    assert path.stat().st_mtime_ns == written
    others = [(PAIRS[::-1], 24), (PAIRS.rename({"text_1": "text_2", "text_2": "text_1"}), 24), (PAIRS, 5)]
    digests = {open_token_file(tmp_path, pairs.lazy(), tokenizer, length).digest for pairs, length in others}
    assert len(digests | {first.digest}) == 4
    assert len(list(tmp_path.iterdir())) == 4 + 1  # no leftovers, and the model


def test_a_null_is_named_by_its_row_wherever_it_stands(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(token_file, "CHUNK", 4)
    holed = PAIRS.with_columns(text_2=pl.when(pl.int_range(12) != 9).then("text_2"))
    with pytest.raises(TrainingError, match="text_2 of pair 9 is null"):
        open_token_file(tmp_path, holed.lazy(), tokenizer, 24)
    with pytest.raises(TrainingError, match=r"lack \['text_2'\]"):
        open_token_file(tmp_path, PAIRS.drop("text_2").lazy(), tokenizer, 24)
