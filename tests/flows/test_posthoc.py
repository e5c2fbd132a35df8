"""Post-hoc systems run from raw sentences to the report, fitted on the corpus or on each set's own sentences."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bsl.flows.config import override
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef
from bsl.storage.artifacts.store import Store
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.stage.run_context import RunContext
from tests.folder_config import saved_config
from tests.toy_sets import allow_any_rows

pytestmark = pytest.mark.usefixtures("without_charts")

PAIRS = 60  # per split
SMALL = {
    "ingest": {"corpus": {"limit": 200}},
    "evaluation": {"precision": "fp32", "sets": ["stsb/dev", "stsb/test"], "bootstrap": {"resamples": 100}},
}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory) -> Path:
    """Write the first pairs of each split of STS-B."""
    folder = tmp_path_factory.mktemp("mirror")
    (folder / "stsb").mkdir()
    for split in ("train", "dev", "test"):
        rows = pl.read_parquet(embedded_path("stsb") / f"{split}.parquet").head(PAIRS)
        rows.write_parquet(folder / "stsb" / f"{split}.parquet")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory, mirror) -> RunContext:
    store = tmp_path_factory.mktemp("posthoc") / "store"
    return RunContext(store=str(store), mirror=str(mirror), device="cpu", threads=1)


@pytest.fixture
def site(place, monkeypatch) -> RunContext:
    allow_any_rows(monkeypatch, "stsb")
    return place


@pytest.fixture
def store(site) -> Store:
    return site.open_store()


def models(store: Store, ref: object) -> dict[str, set[str]]:
    """Return the splits on which each system was scored: system → splits."""
    scores = store.scan(ref, "scores").collect()
    return {name: set(part["split"]) for (name,), part in scores.group_by("model")}


def test_whitening_pipeline_scores_and_exports_the_whitened_encoder(store, site):
    ref = pipeline("tiny-whitening", SMALL | {"transform": {"dimensions": 64}}, site)
    name = "embedded:bert-mini (first-last)"
    assert set(models(store, ref)) == {"Unigram TF-IDF", name, f"{name} + whitening (corpus)"}
    inputs = store.manifest(ref).provenance.inputs
    (folded,) = (CheckpointRef(key=entry.key) for entry in inputs.values() if entry.kind == "checkpoint")
    scores = store.scan(ref, "scores").collect()
    assert set(scores.filter(model=f"{name} + whitening (corpus)")["checkpoint"]) == {folded.key}
    assert f"| {folded} |" in (store.fetch(ref) / "report.md").read_text()

    from sentence_transformers import SentenceTransformer

    folder = store.fetch(folded) / ENCODER
    texts = pl.read_parquet(embedded_path("stsb") / "test.parquet")["sentence1"].unique().sort().head(64).to_list()
    ours = SentenceEncoder.load(folder, saved_config(folder, "folded")).encode(texts)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    assert theirs.shape == (64, 64)
    assert np.abs(ours - theirs).max() <= 1e-5

    # It is an encoder like any other, and can be named by its report.
    again = pipeline("tiny-whitening", SMALL | {"transform": None, "encoder": _start(ref.path)}, site)
    (system,) = set(models(store, again)) - {"Unigram TF-IDF"}
    assert _spearman(store, again, system) == pytest.approx(
        _spearman(store, ref, f"{name} + whitening (corpus)"), abs=1e-4
    )


def test_target_flow_fits_on_all_splits_of_a_set(store, site, mirror):
    flow = {"max_steps": 3, "batch_size": 32}
    ref = pipeline("tiny-flow-target", SMALL | {"transform": flow}, site)
    name = "embedded:bert-mini (first-last) + flow (target)"
    assert models(store, ref)[name] == {"dev", "test"}
    fits = [store.manifest(one) for one in store.refs("transform")]
    (fitted,) = (fit for fit in fits if fit.provenance.config["config"]["name"] == "flow")
    splits = [pl.read_parquet(mirror / "stsb" / f"{split}.parquet") for split in ("train", "dev", "test")]
    texts = pl.concat([rows[side] for rows in splits for side in ("sentence1", "sentence2")])
    assert fitted.figures["vectors"] == texts.n_unique()
    assert fitted.figures["steps"] == 3
    assert "checkpoint" not in {entry.kind for entry in store.manifest(ref).provenance.inputs.values()}


def test_seeded_changes_the_flow_seed_but_not_whitening():
    assert recipe("tiny-flow").seeded(5).transform.seed == 5
    assert recipe("tiny-whitening").seeded(5) == recipe("tiny-whitening")
    trained = override(recipe("tiny"), {"transform": {"name": "flow"}}).seeded(5)
    assert (trained.training.seed, trained.transform.seed) == (5, 5)


def _start(model: str) -> dict[str, object]:
    return EncoderConfig(model=model, pooling="first-last", normalize=True).model_dump()


def _spearman(store: Store, ref: object, system: str) -> list[float]:
    scores = store.scan(ref, "scores").collect().filter(model=system, metric="spearman", protocol="all", subset="all")
    return scores.sort("split")["value"].to_list()
