"""`bsl-evaluate` scores two small encoders on STS-B's test set, compares and reuses them, and names a missing set."""

import pytest

from bsl.flows.evaluation import evaluation
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import SourceError
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import write_tiny

SUITE = ["embedded:stsb/test", "stsb-mt/test"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    models = [str(write_tiny(folder / name, seed=seed)) for seed, name in enumerate(("one", "two"))]
    return Store(str(folder / "store")), models


@pytest.fixture(scope="module")
def evaluated(place, prefect_server) -> ArtifactRef:
    store, models = place
    return evaluation(models, SUITE, None, RunContext(store=store.url, device="cpu", threads=1))


def test_evaluation_scores_every_encoder_and_reports_missing_sets(place, evaluated):
    store, models = place
    scores = store.scan(evaluated, "scores").collect()
    assert sorted(scores["model"].unique()) == sorted("/".join(model.split("/")[-2:]) for model in models)
    assert scores["dataset"].unique().to_list() == ["stsb"]  # the missing set has no row, above all no 0
    assert scores["n"].unique().to_list() == [1379]
    page = (store.fetch(evaluated) / "evaluation.md").read_text()
    assert "## Missing" in page
    assert "| stsb-mt/test | " in page


def test_evaluation_compares_the_second_encoder_with_the_first(place, evaluated):
    store, _ = place
    comparison = store.scan(evaluated, "comparison").collect().filter(metric="spearman").to_dicts()
    scores = store.scan(evaluated, "scores").collect().filter(metric="spearman")["value"].to_list()
    assert len(comparison) == 1
    assert comparison[0]["value"] == pytest.approx(scores[1] - scores[0])
    assert comparison[0]["ci_low"] <= comparison[0]["value"] <= comparison[0]["ci_high"]


def test_second_evaluation_is_cached_and_publishes_no_artifact(place, evaluated, contents):
    store, models = place
    before = contents(store)
    assert evaluation(models, SUITE, None, RunContext(store=store.url, device="cpu", threads=1)) == evaluated
    assert contents(store) == before


def test_evaluation_without_available_sets_raises_source_error(place):
    store, models = place
    with pytest.raises(SourceError, match=r"none of the sets is available: .*'stsb-mt'"):
        evaluation(models[:1], ["stsb-mt/test"], None, RunContext(store=store.url))
