"""The translation memory: no sentence is translated twice, and all readers see the same content."""

import logging
from pathlib import Path

import polars as pl
import pytest

from bsl.storage.artifacts.keys import fingerprint
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.artifacts.store import Store

FINGERPRINT = fingerprint({"model": "sha256:0", "beam": 1})[:16]


def publish(store: Store, name: int, texts: dict[int, str], memory: str = FINGERPRINT) -> ArtifactRef:
    ref = ArtifactRef(kind=f"translations/{memory}", key=f"{name:064x}")
    part = pl.DataFrame(
        {"sentence_id": list(texts), "text": list(texts.values())}, schema_overrides={"sentence_id": pl.UInt64}
    ).with_columns(
        lang=pl.lit("de"), translator=pl.lit(memory),
        n_tokens=pl.lit(1, dtype=pl.UInt32), score=pl.lit(-0.5, dtype=pl.Float32),
    )  # fmt: skip
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(part)
    return ref


def held(store: Store, *seen: str, memory: str = FINGERPRINT) -> dict[str, dict[int, str]]:
    parts = store.intact(f"translations/{memory}", seen)
    return {ref.key[-1]: dict(part.select("sentence_id", "text").collect().rows()) for ref, part in parts}


def test_translation_memory_parts_are_sorted_and_exclude_seen_keys(store: Store) -> None:
    assert held(store) == {}
    publish(store, 9, {1: "later by name", 2: "zwei"})
    first = publish(store, 4, {1: "first by name"})
    assert list(held(store).items()) == [("4", {1: "first by name"}), ("9", {1: "later by name", 2: "zwei"})]
    assert held(store, first.key) == {"9": {1: "later by name", 2: "zwei"}}


def test_translators_have_separate_translation_memories(store: Store) -> None:
    other = fingerprint({"model": "sha256:0", "beam": 4})[:16]
    publish(store, 1, {1: "eins"}, other)
    assert held(store) == {}
    assert held(store, memory=other) == {"1": {1: "eins"}}


def test_damaged_translation_memory_part_is_excluded_with_a_warning(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = publish(store, 1, {1: "eins"})
    publish(store, 2, {2: "zwei"})
    file = next((Path(store.root) / damaged.path).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with caplog.at_level(logging.WARNING):
        assert held(store) == {"2": {2: "zwei"}}
    assert f"{damaged} is not used" in caplog.text
