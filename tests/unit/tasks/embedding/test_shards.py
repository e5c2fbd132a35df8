"""A large corpus is embedded in shards: the result does not depend on the worker, and finished shards are reused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.embedding import shards as embed_shards
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.shards import ReusableVectors
from bsl.tasks.stage import progress as watch
from bsl.tasks.stage.run_context import RunContext
from tests.corpora import publish_corpus
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

TEXTS = [*ORIGINALS, *BACK_DE, *BACK_FR]
ROWS = 5  # per shard: 12 sentences make three shards
CORPUS, PART = CorpusRef(key=f"{12:064x}"), CorpusRef(key=f"{4:064x}")


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_shards, "SHARD_ROWS", ROWS)
    return resolve_model(str(write_tiny(tmp_path / "model")))


def site_in(folder: Path, **fields: object) -> RunContext:
    """Return a run context whose store contains the corpus."""
    site = RunContext(store=str(folder), device="cpu", threads=1, **fields)
    assert [publish_corpus(site, texts) for texts in (TEXTS, TEXTS[:4])] == [CORPUS, PART]
    return site


def embedded(site, model, corpus=CORPUS):
    """Return the manifest of the vectors, and the vectors by sentence id."""
    config = EncoderConfig(model=model.identity, max_length=24)
    ref = embed(site, model, corpus, config, "fp32")
    store = site.open_store()
    table = store.scan(ref).collect()
    assert table["sentence_id"].is_sorted()
    return store.manifest(ref), table["embedding"].to_numpy()


def shards_of(site) -> list[ArtifactRef]:
    return site.open_store().refs("embeddings/shards")


def test_sharded_embedding_equals_single_pass_embedding(tmp_path, model, monkeypatch):
    seen = []

    def listener(event, value):
        if event == "advances":
            seen.append((value.what, value.done, value.total))

    with watch.listening(listener):
        manifest, vectors = embedded(site := site_in(tmp_path / "cut"), model)
    assert (manifest.figures["sentences"], manifest.figures["embedded"]) == (12, 12)
    assert manifest.figures["dimensions"] == vectors.shape[1]
    assert len(shards_of(site)) == len([name for name in manifest.files if name.endswith(".parquet")]) == 3
    assert sorted({done for _, done, _ in seen}) == [0, 5, 10, 12]
    assert seen[-1] == ("embedding, sentences", 12, 12)
    monkeypatch.setattr(embed_shards, "SHARD_ROWS", 12)
    whole, once = embedded(uncut := site_in(tmp_path / "whole"), model)
    assert shards_of(uncut) == []
    assert whole.figures["signature"] == manifest.figures["signature"]
    np.testing.assert_allclose(vectors, once, atol=1e-6)


def test_finished_shards_are_reused_with_identical_bytes(tmp_path, model):
    site = site_in(tmp_path / "store")
    undisturbed, _ = embedded(site, model)
    for lost, again in ((0, 0), (1, ROWS)):
        store = site.open_store()
        store.remove(undisturbed.ref)
        for ref in [ref for ref in shards_of(site) if store.manifest(ref).rows == ROWS][:lost]:
            store.remove(ref)
        after, _ = embedded(site, model)
        assert (after.digest, after.figures["embedded"]) == (undisturbed.digest, again)


def test_embeddings_of_another_corpus_are_reused_unless_version_differs(tmp_path, model):
    site = site_in(tmp_path / "store")
    part, _ = embedded(site, model, PART)
    manifest, _ = embedded(site, model)
    assert (part.figures["embedded"], manifest.figures["embedded"]) == (4, 8)
    mine = manifest.provenance.model_copy(update={"stage_version": 0})
    ids = pl.DataFrame({"sentence_id": [1]}, schema={"sentence_id": pl.UInt64})
    assert ReusableVectors(site.open_store(), mine).of(ids).is_empty()


def test_non_finite_embedding_in_shard_error_names_the_sentence(tmp_path, model):
    folder = model.folder
    weights = load_file(folder / "model.safetensors")
    snow = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("snow")
    weights["embeddings.word_embeddings.weight"][snow] = 3e38
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=r"^corpus sentence: '.*snow.*' has an embedding"):
        embedded(site_in(tmp_path / "store"), resolve_model(str(folder)))
