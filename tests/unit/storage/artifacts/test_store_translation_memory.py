"""The translation memory: no sentence is translated twice, and all readers see the same content."""

import logging
from pathlib import Path

import polars as pl

from bsl.storage.artifacts.refs import ArtifactRef
from tests import corpora
from tests.hostile import key

MEMORY, OTHER = "0123456789abcdef", "fedcba9876543210"


def publish(store, name, texts, memory=MEMORY):
    columns = {"lang": "de", "translator": memory, "n_tokens": 1, "score": -0.5}
    ids = pl.Series("sentence_id", list(texts), pl.UInt64)
    part = pl.DataFrame({"sentence_id": ids, "text": list(texts.values()), **columns})
    return corpora.publish(store, ArtifactRef(kind=f"translations/{memory}", key=key(name)), part)


def held(store, *seen, memory=MEMORY):
    parts = store.intact(f"translations/{memory}", seen)
    return [(ref.key[-1], dict(part.select("sentence_id", "text").collect().rows())) for ref, part in parts]


def test_parts_of_one_translator_are_sorted_and_exclude_seen_keys(store):
    assert held(store) == []
    publish(store, 9, {1: "later by name", 2: "zwei"})
    first = publish(store, 4, {1: "first by name"})
    publish(store, 1, {1: "eins"}, OTHER)
    assert held(store) == [("4", {1: "first by name"}), ("9", {1: "later by name", 2: "zwei"})]
    assert held(store, first.key) == [("9", {1: "later by name", 2: "zwei"})]
    assert held(store, memory=OTHER) == [("1", {1: "eins"})]


def test_damaged_translation_memory_part_is_excluded_with_a_warning(store, caplog):
    damaged = publish(store, 1, {1: "eins"})
    publish(store, 2, {2: "zwei"})
    file = next((Path(store.root) / damaged.path).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with caplog.at_level(logging.WARNING):
        assert held(store) == [("2", {2: "zwei"})]
    assert f"{damaged} is not used" in caplog.text
