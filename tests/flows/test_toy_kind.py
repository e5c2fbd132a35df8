"""A kind of evaluation added by one file and one line of the table goes through a whole evaluation to its page."""

import pytest

from bsl.flows.cli.main import main
from bsl.flows.evaluation import evaluation
from bsl.storage.artifacts.store import Store
from bsl.storage.datasets.registry import DATASETS, OTHER_SETS, suites_of
from bsl.tasks.corpus.evaluation_sets import rows_of
from bsl.tasks.evaluation import kinds
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import write_tiny
from tests.toy_kind import READ, TOY, ParaphraseKind


@pytest.fixture(autouse=True)
def one_more(monkeypatch):
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, ParaphraseKind()))
    rows_of.cache_clear()
    READ.clear()


def test_new_evaluation_kind_is_scored_and_read_once(tmp_path):
    models = [str(write_tiny(tmp_path / name, seed=seed)) for seed, name in enumerate(("one", "two"))]
    store = Store(str(tmp_path / "store"))
    ref = evaluation(models, [TOY, "embedded:stsb/dev"], None, RunContext(store=store.url, device="cpu", threads=1))
    scores = store.scan(ref, "scores").collect()
    labels = ["/".join(model.split("/")[-2:]) for model in models]
    assert scores.filter(dataset=TOY)["model"].to_list() == labels
    comparison = store.scan(ref, "comparison").collect()
    assert comparison["dataset"].unique().to_list() == ["stsb"]  # the toy kind has no comparison
    page = (store.fetch(ref) / "evaluation.md").read_text()
    assert "Paraphrases found" in page
    assert f"| {labels[0]} | accuracy, nearest |" in page
    assert READ == [TOY]


def test_names_without_a_dataset_are_declared_for_commands():
    """The toy kind's name is not: a new kind adds it."""
    names = {name for kind in kinds.KINDS for name in (*kind.names, *kind.suites)}
    datasets = {*DATASETS, *suites_of(DATASETS.values())}
    undeclared = {name for name in names if ":" not in name and name.partition("/")[0] not in datasets}
    assert undeclared == {*OTHER_SETS, TOY}


def test_evaluate_help_lists_suites_and_protocols(capsys):
    assert main(["evaluate", "--help"]) == 0
    out = capsys.readouterr().out
    assert "afs, all\n" in out
    assert "stsb-supervised, afs-10-fold" in out
