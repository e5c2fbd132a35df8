"""IS-BERT runs as a whole pipeline: the start is scored without convolutions, the trained encoder with them."""

import json

import pytest

from bsl.flows.pipeline import pipeline
from bsl.models.encoder.config import CNNConfig
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.run_context import RunContext

pytestmark = pytest.mark.usefixtures("without_charts")

QUICK = {
    "ingest": {"corpus": {"limit": 96}},
    "training": {"batch_size": 16, "max_steps": 3, "eval_every": 3, "precision": "fp32"},
    "evaluation": {"bootstrap": {"resamples": 100}, "sets": ["embedded:stsb/test"], "dev": None},
}


def test_isbert_pipeline_adds_convolutions_to_the_trained_encoder_only(shallow, tmp_path):
    store = Store(str(tmp_path / "store"))
    changes = {**QUICK, "encoder": {"model": str(shallow), "cnn": CNNConfig(channels=8).model_dump()}}
    ref = pipeline("tiny-isbert", changes, RunContext(store=store.url, device="cpu", threads=1))
    inputs = store.manifest(ref).provenance.inputs.values()
    (checkpoint,) = [CheckpointRef(key=entry.key) for entry in inputs if entry.kind == "checkpoint"]
    folder = store.fetch(checkpoint) / ENCODER
    assert [module.kind for module in read_saved(folder).token_heads] == ["CNN", "TokenReLU"]
    pooling = json.loads((folder / "3_Pooling" / "config.json").read_text())
    assert pooling["word_embedding_dimension"] == 24

    made = [ref for ref in store.refs("embeddings") if "embeddings-00000.parquet" in store.manifest(ref).files]
    assert sorted(store.scan(ref).collect_schema()["embedding"].shape for ref in made) == [(24,), (256,)]
    scores = store.scan(ref, "scores").collect()
    before, after = (scores.filter(model=name)["value"] for name in ("before IS-BERT (mean)", "after IS-BERT"))
    assert len(before) == len(after) > 0
    assert (before - after).abs().max() > 1e-4
    assert "| IS-BERT-NLI: " in (store.fetch(ref) / "report.md").read_text()
