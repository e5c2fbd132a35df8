"""Each unique sentence is embedded once, and once for all runs of the same encoder in the same precision."""

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.embedding import shards
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.shards import ReusableVectors
from bsl.tasks.stage.progress import listening
from bsl.tasks.stage.run_context import RunContext
from tests.corpora import publish_corpus
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

TEXTS = [*ORIGINALS, *BACK_DE, *BACK_FR]
ROWS = 5  # per shard: 12 sentences make three shards
CORPUS, PART = CorpusRef(key=f"{12:064x}"), CorpusRef(key=f"{4:064x}")


@pytest.fixture
def small(declare):
    """Return a run context with two small sets that share four sentences."""
    german, french = (
        pl.DataFrame({"sentence1": ORIGINALS, "sentence2": others, "score": [1.0, 2.0, 3.0, 4.0]})
        for others in (BACK_DE, BACK_FR)
    )
    declare("small-de", test=german)
    return declare("small-fr", test=french)


@pytest.fixture
def folder(tmp_path):
    return write_tiny(tmp_path / "model")


def embedded(site, model, texts, precision="fp32", **fields):
    """Return the manifest of the vectors of sets or a corpus, and the vectors by sentence id."""
    if isinstance(texts, list):
        texts = tuple(resolve_scored_set(site, f"{name}/test") for name in texts)
    ref = embed(site, model, texts, EncoderConfig(model=model.identity, max_length=24, **fields), precision)
    table = site.open_store().scan(ref).collect()
    assert table["sentence_id"].is_sorted()
    vectors = dict(zip(table["sentence_id"], table["embedding"].to_numpy(), strict=True))
    return site.open_store().manifest(ref), vectors


def newly(*arguments, **fields):
    return embedded(*arguments, **fields)[0].figures["embedded"]


def test_later_run_embeds_only_new_sentences(small, folder):
    model = resolve_model(str(folder))
    made, first = embedded(small, model, ["small-de"])
    assert made.figures["embedded"] == 8
    made, both = embedded(small, model, ["small-fr", "small-de"])
    assert (made.figures["embedded"], len(both)) == (4, 12)
    made, again = embedded(small, model, ["small-fr"])
    assert (made.figures["embedded"], len(again)) == (0, 8)
    assert all(np.array_equal(both[sentence], vector) for sentence, vector in (first | again).items())


def test_other_encoder_pooling_or_precision_or_a_damaged_artifact_is_not_reused(small, folder, tmp_path):
    model, other = resolve_model(str(folder)), resolve_model(str(write_tiny(tmp_path / "other", seed=1)))
    assert newly(small, model, ["small-de"]) == 8
    assert newly(small, model, ["small-fr"], pooling="cls") == 8
    assert newly(small, model, ["small-fr"], precision="bf16") == 8
    assert newly(small, other, ["small-fr"]) == 8
    for part in (tmp_path / "store" / "embeddings").glob("*/*.parquet"):
        part.write_bytes(part.read_bytes()[:-8] + bytes(8))
    assert newly(small, model, ["small-fr"]) == 8


def site_in(folder, **fields):
    """Return a run context whose own store contains the corpora."""
    site = RunContext(store=str(folder), device="cpu", threads=1, **fields)
    assert [publish_corpus(site, texts) for texts in (TEXTS, TEXTS[:4])] == [CORPUS, PART]
    return site


def shards_of(site):
    return site.open_store().refs("embeddings/shards")


@pytest.fixture
def in_shards(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_ROWS", ROWS)


@pytest.mark.usefixtures("in_shards")
def test_sharded_embedding_equals_single_pass_embedding(folder, tmp_path, monkeypatch):
    model, seen = resolve_model(str(folder)), []

    def listener(event, value):
        if event == "advances":
            seen.append((value.what, value.done, value.total))

    with listening(listener):
        manifest, vectors = embedded(cut := site_in(tmp_path / "cut"), model, CORPUS)
    figures = manifest.figures
    assert (figures["sentences"], figures["embedded"], figures["dimensions"]) == (12, 12, 32)
    assert len(shards_of(cut)) == len([name for name in manifest.files if name.endswith(".parquet")]) == 3
    assert sorted({done for _, done, _ in seen}) == [0, 5, 10, 12]
    assert seen[-1] == ("embedding, sentences", 12, 12)
    monkeypatch.setattr(shards, "SHARD_ROWS", 12)
    whole, once = embedded(uncut := site_in(tmp_path / "whole"), model, CORPUS)
    assert shards_of(uncut) == []
    assert whole.figures["signature"] == figures["signature"]
    np.testing.assert_allclose(list(vectors.values()), list(once.values()), atol=1e-6)


@pytest.mark.usefixtures("in_shards")
def test_finished_shards_are_reused_with_identical_bytes(folder, tmp_path):
    model, site = resolve_model(str(folder)), site_in(tmp_path / "store")
    undisturbed, _ = embedded(site, model, CORPUS)
    for lost, again in ((0, 0), (1, ROWS)):
        store = site.open_store()
        store.remove(undisturbed.ref)
        for ref in [ref for ref in shards_of(site) if store.manifest(ref).rows == ROWS][:lost]:
            store.remove(ref)
        after, _ = embedded(site, model, CORPUS)
        assert (after.digest, after.figures["embedded"]) == (undisturbed.digest, again)


@pytest.mark.usefixtures("in_shards")
def test_embeddings_of_another_corpus_are_reused_unless_version_differs(folder, tmp_path):
    model, site = resolve_model(str(folder)), site_in(tmp_path / "store")
    assert newly(site, model, PART) == 4
    manifest, _ = embedded(site, model, CORPUS)
    assert manifest.figures["embedded"] == 8
    mine = manifest.provenance.model_copy(update={"stage_version": 0})
    ids = pl.DataFrame({"sentence_id": [1]}, schema={"sentence_id": pl.UInt64})
    assert ReusableVectors(site.open_store(), mine).of(ids).is_empty()


@pytest.mark.usefixtures("in_shards")
def test_non_finite_embedding_error_names_set_row_and_sentence(small, folder, tmp_path):
    weights = load_file(folder / "model.safetensors")
    snow = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("snow")
    weights["embeddings.word_embeddings.weight"][snow] = 3e38  # finite, but its square is not
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    message = r"^small-de test, row 2, sentence1: 'Two dogs run across the snow\.' has an embedding that is not finite"
    with pytest.raises(EncoderError, match=message):
        embedded(small, resolve_model(str(folder)), ["small-de"])
    with pytest.raises(EncoderError, match=r"^corpus sentence: '.*snow.*' has an embedding"):
        embedded(site_in(tmp_path / "own"), resolve_model(str(folder)), CORPUS)
