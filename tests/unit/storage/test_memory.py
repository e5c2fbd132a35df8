"""The translation memory: nothing is translated twice, and every reader sees the same."""

import logging
from pathlib import Path

import polars as pl
import pytest

from storage.manifest import Provenance
from storage.memory import TranslationMemory, translator_fingerprint
from storage.refs import ArtifactRef
from storage.store import Store

FINGERPRINT = translator_fingerprint({"model": "sha256:0", "beam": 1})


def publish(store: Store, name: int, texts: dict[int, str], fingerprint: str = FINGERPRINT) -> ArtifactRef:
    ref = ArtifactRef(kind=f"translations/{fingerprint}", key=f"{name:064x}")
    part = pl.DataFrame(
        {"sentence_id": list(texts), "text": list(texts.values())}, schema_overrides={"sentence_id": pl.UInt64}
    ).with_columns(
        lang=pl.lit("de"), translator=pl.lit(fingerprint),
        n_tokens=pl.lit(1, dtype=pl.UInt32), score=pl.lit(-0.5, dtype=pl.Float32),
    )  # fmt: skip
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(part)
    return ref


def sentences(*ids: int) -> pl.LazyFrame:
    return pl.LazyFrame(
        {"sentence_id": ids, "text": [f"s{n}" for n in ids]}, schema_overrides={"sentence_id": pl.UInt64}
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def test_an_empty_memory_lacks_everything(store: Store) -> None:
    memory = TranslationMemory(store, FINGERPRINT)
    assert memory.parts() == []
    assert memory.missing(sentences(3, 1, 2)).collect()["sentence_id"].to_list() == [3, 1, 2]
    assert memory.lookup(sentences(1)).collect().height == 0


def test_missing_is_what_no_part_holds(store: Store) -> None:
    publish(store, 1, {1: "eins", 2: "zwei"})
    publish(store, 2, {3: "drei"})
    memory = TranslationMemory(store, FINGERPRINT)
    missing = memory.missing(sentences(1, 2, 3, 4, 5)).collect()
    assert missing.rows() == [(4, "s4"), (5, "s5")]
    found = memory.lookup(sentences(5, 3, 1)).collect()
    assert dict(found.select("sentence_id", "text").rows()) == {1: "eins", 3: "drei"}


def test_of_duplicates_the_first_by_part_name_wins_whichever_came_first(store: Store) -> None:
    publish(store, 9, {1: "later by name", 2: "zwei"})
    publish(store, 4, {1: "first by name"})
    found = TranslationMemory(store, FINGERPRINT).lookup(sentences(1, 2)).collect()
    assert dict(found.select("sentence_id", "text").rows()) == {1: "first by name", 2: "zwei"}


def test_translators_do_not_share_a_memory(store: Store) -> None:
    other = translator_fingerprint({"model": "sha256:0", "beam": 4})
    publish(store, 1, {1: "eins"}, other)
    assert TranslationMemory(store, FINGERPRINT).missing(sentences(1)).collect().height == 1
    assert TranslationMemory(store, other).missing(sentences(1)).collect().height == 0


def test_the_fingerprint_hangs_on_values_and_not_on_their_order() -> None:
    assert translator_fingerprint({"beam": 1, "model": "sha256:0"}) == FINGERPRINT
    assert FINGERPRINT == "35877b6cd2fe2564"


def test_a_damaged_part_counts_as_missing_and_says_so(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    damaged = publish(store, 1, {1: "eins"})
    publish(store, 2, {2: "zwei"})
    file = next((Path(store.root) / damaged.path).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with caplog.at_level(logging.WARNING):
        assert TranslationMemory(store, FINGERPRINT).missing(sentences(1, 2)).collect()["sentence_id"].to_list() == [1]
    assert "left out of the translation memory" in caplog.text


def test_a_half_written_part_does_not_exist(store: Store) -> None:
    part = publish(store, 1, {1: "eins"})
    (Path(store.root) / part.path / "manifest.json").unlink()
    assert TranslationMemory(store, FINGERPRINT).parts() == []
    assert TranslationMemory(store, FINGERPRINT).missing(sentences(1)).collect().height == 1
