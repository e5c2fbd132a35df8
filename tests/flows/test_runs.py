"""Runs of other shapes than `tiny`: two trainings, none, convolutions, word vectors, transforms of vectors."""

import json

import numpy as np
import polars as pl
import pytest

from bsl.flows.comparison import comparing
from bsl.flows.config import override
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.flows.recipes.shared import ALONE
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.signature import parse_signature
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.settings import Phase
from tests.toy_sets import allow_any_rows

pytestmark = pytest.mark.usefixtures("without_charts")

run = pipeline.fn  # outside of Prefect, where test_pipeline.py runs it: the server's work would take as long
PAIRS = 60  # per split
SETS = {"sets": ["stsb/test"], "dev": "stsb/dev", "bootstrap": {"resamples": 100}}
FEW = {"ingest": {"corpus": {"limit": 200}}, "evaluation": {**SETS, "precision": "fp32"}}
WORDS = ["a", "man", "woman", "is", "playing", "the", "guitar", "dog", "running", "on", "in", "and", "of", ".", "two"]


@pytest.fixture(scope="module")
def site(few_stsb_rows):
    return few_stsb_rows


def checkpoints(store, ref):
    inputs = store.manifest(ref).provenance.inputs.values()
    return [CheckpointRef(key=entry.key) for entry in inputs if entry.kind == "checkpoint"]


@pytest.fixture(scope="module")
def alone(alone):
    return {**alone, "evaluation": {**alone["evaluation"], **SETS}}


@pytest.fixture(scope="module")
def two_phases(site, alone):
    learning = {**alone, "training": {**alone["training"], "select": "best"}}  # three steps can be worse than the start
    settings = override(recipe("tiny"), learning).training.model_copy(update={"objective": ContrastiveConfig()})
    first = Phase(pairs=ALONE, training=settings)
    return run("tiny", {**learning, "earlier": [first.model_dump()]}, site)


@pytest.fixture(scope="module")
def untrained(site, alone, two_phases):
    start = {"model": two_phases.path, "revision": None}
    return run("tiny", {**alone, "encoder": start, "training": None}, site)


def test_second_phase_starts_from_the_checkpoint_of_the_first(store, two_phases):
    first, second = checkpoints(store, two_phases)
    assert store.manifest(second).provenance.inputs["start"].key == first.key
    encoders = [store.manifest(ref).files[f"{ENCODER}/model.safetensors"].sha256 for ref in (first, second)]
    assert encoders[0] != encoders[1]
    page = (store.fetch(two_phases) / "report.md").read_text()
    assert "after contrastive training, then BSL + in-batch negatives" in page


def test_run_without_training_scores_the_encoder_of_a_report_and_differs_by_zero(site, store, two_phases, untrained):
    assert checkpoints(store, untrained) == []
    assert len(store.scan(untrained, "scores").collect()["model"].unique()) == 2  # TF-IDF, and the untrained encoder
    page = (store.fetch(untrained) / "report.md").read_text()
    assert "## Training" not in page
    assert "model-card.md" not in store.manifest(untrained).files
    compared = comparing([two_phases.path, untrained.key[:8]], site)
    _, row = store.scan(compared).collect().to_dicts()
    assert (row["label"], row["reference"], row["dataset"]) == ("B (tiny, changed)", "A (tiny, changed)", "stsb test")
    assert (row["difference"], row["difference_low"], row["difference_high"]) == (0, 0, 0)


def test_dev_split_is_not_averaged_with_the_test_split_of_runs_without_training(site, store):
    changes = {**FEW, "evaluation": {**FEW["evaluation"], "sets": ["stsb/dev", "stsb/test"]}}
    reports = [run(name, changes, site) for name in ("tiny-avg", "tiny-cls")]
    table = store.scan(comparing.fn([ref.path for ref in reports], site)).collect()
    assert dict(table.select("dataset", "decides").rows()) == {"stsb test": True, "stsb dev": False}


def test_comparing_runs_without_common_sets_suggests_evaluate(site, alone, two_phases):
    evaluated = {**alone["evaluation"], "sets": ["stsb/dev"]}
    other = run("tiny", {**alone, "training": None, "evaluation": evaluated}, site)
    refused = r"share no set.*A \(tiny, changed\) on stsb/test; B .*bsl evaluate report/"
    with pytest.raises(EvaluationError, match=refused):
        comparing.fn([two_phases.path, other.path], site)


def test_isbert_adds_convolutions_to_the_trained_encoder_only(site, store, shallow):
    changes = {
        **FEW,
        "evaluation": {**SETS, "dev": None},
        "encoder": {"model": str(shallow), "cnn": CNNConfig(channels=8).model_dump()},
        "training": {"batch_size": 16, "max_steps": 3, "eval_every": 3, "precision": "fp32"},
    }
    ref = run("tiny-isbert", changes, site)
    (checkpoint,) = checkpoints(store, ref)
    folder = store.fetch(checkpoint) / ENCODER
    assert [module.kind for module in read_saved(folder).token_heads] == ["CNN", "TokenReLU"]
    assert json.loads((folder / "3_Pooling" / "config.json").read_text())["word_embedding_dimension"] == 24
    scores = store.scan(ref, "scores").collect()
    before, after = (scores.filter(model=name)["value"] for name in ("before IS-BERT (mean)", "after IS-BERT"))
    assert len(before) == len(after) > 0
    assert (before - after).abs().max() > 1e-4


def test_untrained_recipe_scores_word_vectors_and_tfidf(site, store, tmp_path):
    table = np.random.default_rng(0).normal(size=(len(WORDS), 8))
    rows = [f"{word} {' '.join(f'{value:.4f}' for value in row)}\n" for word, row in zip(WORDS, table, strict=True)]
    (tmp_path / "toy.8d.txt").write_text("".join(rows))
    changes = {**FEW, "encoder": {"model": str(tmp_path / "toy.8d.txt")}, "words": {"split": "punctuation"}}
    scores = store.scan(run("tiny-avg", changes, site), "scores").collect()
    assert scores["model"].unique(maintain_order=True).to_list()[0] == "Unigram TF-IDF"
    assert {parse_signature(line).get("words") for line in scores["signature"]} == {None, "punctuation"}


def test_report_of_a_whitened_encoder_names_the_same_encoder(site, store):
    name = "embedded:bert-mini (first-last)"
    ref = run("tiny-whitening", FEW | {"transform": {"dimensions": 64}}, site)
    (folded,) = checkpoints(store, ref)
    scores = store.scan(ref, "scores").collect()
    whitened = scores.filter(model=f"{name} + whitening (corpus)", metric="spearman", protocol="all")
    assert set(scores["model"]) == {"Unigram TF-IDF", name, whitened["model"][0]}
    assert set(whitened["checkpoint"]) == {folded.key}
    start = EncoderConfig(model=ref.path, pooling="first-last", normalize=True).model_dump()
    again = store.scan(run("tiny-whitening", FEW | {"transform": None, "encoder": start}, site), "scores")
    found = again.filter(pl.col("model") != "Unigram TF-IDF", metric="spearman", protocol="all").collect()
    assert found["value"].to_list() == pytest.approx(whitened["value"].to_list(), abs=1e-4)


def test_target_flow_fits_on_all_splits_of_a_set(site, store, tmp_path, monkeypatch):
    allow_any_rows(monkeypatch, "stsb")
    (tmp_path / "stsb").mkdir()
    for split in ("train", "dev", "test"):
        rows = pl.read_parquet(embedded_path("stsb") / f"{split}.parquet").head(PAIRS)
        rows.write_parquet(tmp_path / "stsb" / f"{split}.parquet")
    changes = {
        **FEW,
        "evaluation": {**SETS, "sets": ["stsb/dev", "stsb/test"]},
        "transform": {"max_steps": 3, "batch_size": 32},
    }
    ref = run("tiny-flow-target", changes, site.model_copy(update={"mirror": str(tmp_path)}))
    scores = store.scan(ref, "scores").filter(model="embedded:bert-mini (first-last) + flow (target)").collect()
    assert set(scores["split"]) == {"dev", "test"}
    fits = [store.manifest(one) for one in store.refs("transform")]
    (fitted,) = (fit for fit in fits if fit.provenance.config["config"]["name"] == "flow")
    assert (fitted.figures["vectors"], fitted.figures["steps"]) == (3 * 2 * PAIRS, 3)
    assert checkpoints(store, ref) == []


def test_seeded_changes_the_flow_seed_but_not_whitening():
    assert recipe("tiny-flow").seeded(5).transform.seed == 5
    assert recipe("tiny-whitening").seeded(5) == recipe("tiny-whitening")
    trained = override(recipe("tiny"), {"transform": {"name": "flow"}}).seeded(5)
    assert (trained.training.seed, trained.transform.seed) == (5, 5)
