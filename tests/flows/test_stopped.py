"""A harmful training stops early; the report describes the untrained encoder, and its first line gives the finding."""

import json

import pytest

from bsl.flows.cli.main import main
from bsl.flows.sweep.sweep import ablation, reproduction
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.run_context import RunContext

pytestmark = pytest.mark.usefixtures("without_charts")


@pytest.fixture(scope="module")
def harmful(alone) -> dict[str, object]:
    """Return overrides with a learning rate that collapses the encoder at once, and the published `select: best`."""
    training = {**alone["training"], "lr": 1.0, "warmup": 0.0, "select": "best", "eval_every": 1}
    return {**alone, "training": {**training, "collapse": {"max_dev_drop": 0.01, "patience": 1}}}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    return Store(str(tmp_path_factory.mktemp("stopped") / "store"))


@pytest.mark.usefixtures("named_server")
def test_stopped_training_sets_page_json_and_exit_code(store, harmful, capsys):
    settings = [part for name, value in harmful.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    assert main(["run", "tiny", *settings, "--json", "--store", store.url, "--device", "cpu"]) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["verdict"] == "STOPPED"
    assert " by step 1: " in outcome["reason"]
    assert outcome["advice"] == "The figures are of the original encoder."
    page = (store.fetch(*store.refs("report")) / "report.md").read_text()
    assert page.split("\n\n")[1].startswith("**STOPPED** ")
    figures = {row["model"]: row["value"] for row in outcome["scores"] if row["metric"] == "spearman"}
    before, after = (figure for name, figure in figures.items() if name.startswith(("before", "after")))
    assert before == after


def test_stopped_point_gets_no_score_in_sweep_and_reproduction(store, harmful):
    site = RunContext(store=store.url, device="cpu", threads=1)
    over = {"training.collapse": [None, harmful["training"]["collapse"]]}
    rows = store.scan(ablation("tiny", over, 1, harmful, site=site)).collect().rows(named=True)
    assert [(row["seeds"], row["mean"] is None) for row in rows] == [(1, False), (0, True)]
    said = store.manifest(reproduction("tiny", overrides=harmful, site=site)).figures["findings"]
    assert said[0].endswith(": NOT COMPARABLE")
    assert any(line.startswith("training was stopped: ") for line in said)


def test_nan_loss_shows_a_dash_and_reason_in_sweep(store, alone):
    """Cosines divided by this temperature are infinite in fp32."""
    site = RunContext(store=store.url, device="cpu", threads=1)
    changes = {**alone, "training": {**alone["training"], "precision": "fp32"}}
    study = ablation("tiny", {"training.objective.temperature": [0.05, 1e-40]}, 1, changes, site=site)
    rows = store.scan(study).collect().rows(named=True)
    assert [(row["seeds"], row["mean"] is None) for row in rows] == [(1, False), (0, True)]
    page = (store.fetch(study) / "sweep.md").read_text()
    assert "| temperature 1e-40 | – |" in page
    assert "temperature 1e-40: seed 0: loss is nan at step 1, expected a finite number" in page
    assert list(store.manifest(study).figures["faults"]) == ["temperature 1e-40"]
