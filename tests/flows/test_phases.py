"""Runs with two trainings in a row and runs without training use the same pipeline."""

import pytest

from bsl.flows.comparison import comparing
from bsl.flows.config import override
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.flows.recipes.shared import ALONE
from bsl.models.errors import EvaluationError
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.settings import Phase
from bsl.tasks.stage.run_context import RunContext


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(str(tmp_path_factory.mktemp("phases") / "store"))


def test_second_phase_starts_from_the_checkpoint_of_the_first(store, alone):
    learning = {**alone, "training": {**alone["training"], "select": "best"}}  # three steps can be worse than the start
    settings = override(recipe("tiny"), learning).training.model_copy(update={"objective": ContrastiveConfig()})
    first = Phase(pairs=ALONE, training=settings)
    changes = {**learning, "earlier": [first.model_dump()]}
    ref = pipeline("tiny", changes, RunContext(store=store.url, device="cpu", threads=1))
    checkpoints = [entry.key for entry in store.manifest(ref).provenance.inputs.values() if entry.kind == "checkpoint"]
    assert len(checkpoints) == 2
    assert store.manifest(CheckpointRef(key=checkpoints[1])).provenance.inputs["start"].key == checkpoints[0]
    encoder = f"{ENCODER}/model.safetensors"
    files = [store.manifest(CheckpointRef(key=key)).files[encoder].sha256 for key in checkpoints]
    assert files[0] != files[1]
    page = (store.fetch(ref) / "report.md").read_text()
    assert "after contrastive training, then BSL + in-batch negatives" in page
    assert "](curve-loss.svg)" in page
    html = (store.fetch(ref) / "report.html").read_text()
    assert "Pairs of 2. BSL + in-batch negatives" in html
    assert html.count("<svg") >= 5
    card = (store.fetch(ref) / "model-card.md").read_text()
    assert "with objective contrastive on" in card
    assert "pairs of views (original), then with objective bsl on" in card


def test_run_without_training_scores_the_encoder_of_a_report(store, alone):
    (report,) = store.refs("report")
    start = {"model": str(report.path), "revision": None}
    changes = {**alone, "encoder": start, "training": None}
    ref = pipeline("tiny", changes, RunContext(store=store.url, device="cpu", threads=1))
    manifest = store.manifest(ref)
    assert "checkpoint" not in {entry.kind for entry in manifest.provenance.inputs.values()}
    scores = store.scan(ref, "scores").collect()
    assert len(scores["model"].unique()) == 2  # TF-IDF, and the untrained encoder
    page = (store.fetch(ref) / "report.md").read_text()
    assert "## Training" not in page
    assert "Sentences and their views" not in page
    assert "model-card.md" not in manifest.files
    assert "Nothing was trained" in (store.fetch(ref) / "report.html").read_text()


def test_comparison_of_equal_encoders_has_zero_difference(store, encoder):
    """The second run's encoder is the first run's result, so the difference is 0."""
    trained, taken = sorted(store.refs("report"), key=lambda ref: store.manifest(ref).created_at)
    ref = comparing([trained.path, taken.key[:8]], RunContext(store=store.url, device="cpu", threads=1))
    _, row = store.scan(ref).collect().to_dicts()
    assert (row["label"], row["reference"], row["dataset"]) == ("B (tiny)", "A (tiny)", "stsb test")
    assert (row["difference"], row["difference_low"], row["difference_high"]) == (0, 0, 0)
    assert sorted(store.scan(ref, "scores").collect()["model"].unique()) == ["A (tiny)", "B (tiny)"]
    page, text = (store.fetch(ref) / "sweep.html").read_text(), (store.fetch(ref) / "sweep.md").read_text()
    assert "On stsb test, no significant difference from A (tiny): B (tiny)." in page
    assert f"| encoder.model | {encoder['model']} |" in text
    assert page.count("<svg") == 1 + 5


def test_comparing_runs_without_common_sets_suggests_evaluate(store, alone):
    site = RunContext(store=store.url, device="cpu", threads=1)
    (first, *_) = sorted(store.refs("report"), key=lambda ref: store.manifest(ref).created_at)
    evaluated = {**alone["evaluation"], "sets": ["embedded:stsb/dev"]}
    second = pipeline("tiny", {**alone, "training": None, "evaluation": evaluated}, site)
    with pytest.raises(
        EvaluationError, match=r"share no set.*A \(tiny\) on embedded:stsb/test; B .*bsl evaluate report/"
    ):
        comparing([first.path, second.path], site)
