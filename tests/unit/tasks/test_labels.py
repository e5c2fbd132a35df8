"""Labels that a person gives, and what of the text they keep from being learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.text.normalize import sentence_ids
from storage.labels import label_source
from tasks.labels import labelled_ids

if TYPE_CHECKING:
    from pathlib import Path


def test_every_sentence_of_a_labelled_text_is_known(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    texts = ["The room was cold and small. Nobody came when we rang the bell!", "We would gladly come here again."]
    pl.DataFrame({"text": texts, "label": ["bad", "good"]}).write_csv(file)
    expected = [
        "The room was cold and small.",
        "Nobody came when we rang the bell!",
        "We would gladly come here again.",
    ]
    ids = pl.DataFrame({"text": expected}).select(sentence_ids(pl.col("text"))).to_series()
    assert {*labelled_ids(label_source(str(file)))} == {*ids}
