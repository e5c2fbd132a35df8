"""Encoders of several languages get a score per track: LaBSE by its recipe, a model like mUSE as a Python object."""

import numpy as np
import polars as pl
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

from bsl.flows.pipeline import pipeline
from bsl.models.encoder.tfidf import TfIdf
from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
from bsl.models.evaluation.signature import parse_signature
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.datasets.registry import DATASETS, suites_of
from bsl.tasks.corpus.evaluation_sets import unique_sentences
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.evaluation.python_api import evaluate
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows

TRACKS = [dataset.name for dataset in suites_of(DATASETS.values())["sts17-bsl"]]
PAIRS, WIDTH = 12, 256


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """Write some pairs per track, English with German, Spanish or French."""
    folder = tmp_path_factory.mktemp("mirror")
    rows = pl.read_parquet(embedded_path("stsb-mt") / "test.parquet", columns=["sentence1", "sentence2", "score"])
    rows = rows.gather_every(len(rows) // (PAIRS * len(TRACKS)))
    for number, name in enumerate(TRACKS):
        (folder / name).mkdir()
        rows[number * PAIRS : (number + 1) * PAIRS].write_parquet(folder / name / "test.parquet")
    return folder


@pytest.fixture
def site(tmp_path, mirror, monkeypatch):
    allow_any_rows(monkeypatch, *TRACKS)
    return RunContext(store=str(tmp_path / "store"), mirror=str(mirror), device="cpu", threads=1)


@pytest.fixture(scope="module")
def labse(tmp_path_factory):
    """Write a folder with LaBSE's modules: [CLS], a dense layer with tanh, normalization."""
    folder = tmp_path_factory.mktemp("labse") / "LaBSE"
    torch.manual_seed(0)
    transformer = modules.Transformer(str(embedded_path("bert-mini-mul")))
    parts = [modules.Pooling(WIDTH, "cls"), modules.Dense(WIDTH, WIDTH), modules.Normalize()]
    SentenceTransformer(modules=[transformer, *parts], device="cpu").save(str(folder))
    return folder


def test_labse_folder_gets_the_expected_score_per_track(site, labse, mirror):
    changes = {
        "ingest": {"sources": [{"dataset": "embedded:nli-sample"}], "corpus": {"limit": 64}},
        "encoder": {"model": str(labse), "revision": None},
        "evaluation": {"bootstrap": {"resamples": 100}},
    }
    store = site.open_store()
    report = pipeline("published-labse", changes, site)
    scores = store.scan(report, "scores").collect().filter(metric="spearman")
    # TF-IDF of an English corpus knows no word of some tracks, and gets no score there.
    assert set(scores.filter(model="Unigram TF-IDF")["dataset"]) < set(TRACKS)
    found = dict(scores.filter(pl.col("checkpoint") != "").select("dataset", "value").iter_rows())
    assert found.keys() == set(TRACKS)
    peer = SentenceTransformer(str(labse), device="cpu")
    for name, value in found.items():
        rows = pl.read_parquet(mirror / name / "test.parquet")
        first, second = (peer.encode(rows[side].to_list()) for side in ("sentence1", "sentence2"))
        assert value == pytest.approx(spearmanr((first * second).sum(axis=1), rows["score"]).statistic, abs=1e-6)
    assert "| LaBSE: " in (store.fetch(report) / "report.md").read_text()


def test_tfidf_without_known_words_gets_no_score(site):
    sets = available(site, ["sts17-ar-ar/test"])
    texts = unique_sentences(sets.embedded())
    table = TfIdf([["zzz"]]).vectors(texts["text"].to_list())
    words = Vectors("words", dict(zip(texts["sentence_id"], range(texts.height), strict=True)), {}, table)
    ((kind, scored),) = sets.frozen()
    assert kind.figures(scored, words, ScoringConfig(bootstrap=BootstrapConfig(resamples=100))).is_empty()


def muse_like(sentences):
    """Embed sentences of any language as a tensor: counts of hashed character trigrams."""
    trigrams = [[sum(text[n : n + 3].encode()) % 128 for n in range(len(text))] for text in sentences]
    return torch.tensor(np.stack([np.bincount(each, minlength=128) for each in trigrams]).astype(np.float32))


def test_multilingual_python_object_gets_a_score_per_track(site):
    scores = evaluate(muse_like, ["sts17-bsl"], site, BootstrapConfig(resamples=100), name="mUSE").scores
    spearman = scores.filter(metric="spearman")
    assert set(spearman["dataset"]) == set(TRACKS)
    assert {parse_signature(line)["vectors"] for line in scores["signature"]} == {"object mUSE"}
    assert spearman["value"].is_finite().all()
