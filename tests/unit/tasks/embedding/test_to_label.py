"""Texts to label: chosen from the user's files, written with an empty column, accepted when filled in."""

import json

import polars as pl
import pytest

from bsl.models.corpus.labels import parts_of
from bsl.models.encoder.config import EncoderConfig
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError
from bsl.storage.sources.labels import label_source, read_labels
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.own_text import text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.tasks.embedding.to_label import choose_to_label, write_to_label

MODEL = "embedded:mini-sentence"


def _chosen(site, path, count):
    sources = text_sources(ReadingConfig(), [str(path)])
    ref = choose_to_label(site, sources, resolve_model(MODEL), EncoderConfig(model=MODEL), count, seed=0)
    write_to_label(site.open_store(), ref, path.with_name("to-label.csv"))
    return site.open_store().scan(ref).collect()


def test_chosen_texts_are_accepted_as_labels_when_filled_in(site, tmp_path):
    texts = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")["premise"].unique(maintain_order=True)
    lines = ['He said: "no,\nnot now", and left the café.', *texts.head(120)]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    chosen = _chosen(site, path, 40)
    assert chosen.height == chosen["text"].n_unique() == 40
    assert {*chosen["text"]} <= {*lines}

    written = tmp_path / "to-label.csv"
    with pytest.raises(SourceError, match="no labels found"):
        label_source(str(written))
    table = pl.read_csv(written)
    assert table.columns == ["text", "label"]
    filled = table.with_columns(label=pl.Series(["a", "b"] * 20))
    filled[:30].write_csv(written, include_bom=True)
    rows = read_labels(label_source(str(written)))
    assert rows["text_1"].to_list() == chosen["text"][:30].to_list()
    assert rows["label"].to_list() == ["a", "b"] * 15


def test_few_texts_are_all_chosen_but_for_short_and_long_ones(site, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"Sentence number {number} is here.\n" for number in range(30)) + "short\n" + "x" * 3000)
    assert _chosen(site, path, 40).height == 30


@pytest.mark.parametrize("text", ["Cup {}", "Word " * 500 + "{}"])
def test_texts_that_are_mostly_short_or_long_are_chosen_too(site, tmp_path, text):
    """Regression: of 600 passages of 500 words, none was to be labelled."""
    path = tmp_path / "texts.txt"
    path.write_text("".join(text.format(number) + "\n" for number in range(30)) + "A sentence of usual length.\n")
    assert _chosen(site, path, 40).height == 31


def test_labels_of_chosen_texts_are_split_into_halves(site, tmp_path):
    """Regression: of more than 10,700 texts, only those were chosen that become test labels, so none could train."""
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"Sentence number {number} is here.\n" for number in range(2000)))
    labelled = _chosen(site, path, 100).select(text_1="text", label=pl.lit("a"))
    other = pl.DataFrame({"copy": [0], "common": [False]}, schema_overrides={"copy": pl.UInt64})
    parts = parts_of(labelled, ["text_1"], other, other["copy"], use="adapt", seed=0)
    assert 30 <= (parts == "judge").sum() <= 70
