"""A sweep: points share what they can, and one more value costs itself alone."""

import pytest

from bsl.flows.sweep.sweep import ablation
from bsl.models.errors import EvaluationError, TrainingError
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.run_context import RunContext

MOMENTUM = "training.objective.momentum"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(str(tmp_path_factory.mktemp("sweep") / "store"))


@pytest.fixture(scope="module")
def quick(alone, without_charts):
    """Return overrides with which a run is not evaluated while it trains."""
    return {**alone, "evaluation": {**alone["evaluation"], "dev": None}}


@pytest.fixture(scope="module")
def swept(store, quick):
    site = RunContext(store=store.url, device="cpu", threads=1)
    return ablation("tiny", {MOMENTUM: [0.5, 1.0]}, 2, quick, site=site)


def test_sweep_reports_mean_and_difference_with_interval_per_point(store, swept):
    table = store.scan(swept).collect()
    assert table["label"].to_list() == ["momentum 0.5", "momentum 1.0"]
    assert table["seeds"].to_list() == [2, 2]
    assert table["difference"].is_null().to_list() == [True, False]
    second = table.row(1, named=True)
    assert second["difference_low"] <= second["difference"] <= second["difference_high"]
    assert second["mean"] - table["mean"][0] == pytest.approx(second["difference"])
    folder = store.fetch(swept)
    assert (folder / "setting.svg").read_text().startswith("<svg ")
    page = (folder / "sweep.md").read_text()
    assert page.startswith("# tiny over training.objective.momentum; 2 seeds\n")
    assert "\n## stsb test (spearman, all), compared with momentum 0.5\n" in page


def test_sweep_points_share_artifacts_made_before_training(store, swept):
    kinds = [ref.kind for ref in store.refs()]
    assert [kinds.count(kind) for kind in ("corpus", "views", "pairs", "checkpoint")] == [1, 1, 1, 4]


def test_added_sweep_value_trains_only_the_new_points(store, swept, quick):
    before = {ref.key for ref in store.refs("checkpoint")}
    site = RunContext(store=store.url, device="cpu", threads=1)
    more = ablation("tiny", {MOMENTUM: [0.5, 1.0, 0.9]}, 2, quick, site=site)
    assert len({ref.key for ref in store.refs("checkpoint")} - before) == 2
    assert store.scan(more).collect()["mean"][:2].to_list() == store.scan(swept).collect()["mean"].to_list()


def test_recipe_sweep_compares_each_recipe_with_each_reference(store, swept, quick):
    """The trained one is a point of the first sweep, so nothing is trained; what draws nothing is run once."""
    before = store.refs("checkpoint")
    changes = {**quick, "training": {**quick["training"], "objective": {"momentum": 0.5}}}
    names = ["tiny-avg", "tiny"]
    site = RunContext(store=store.url, device="cpu", threads=1)
    study = ablation("tiny-avg", {"recipe": names}, 2, changes, against=names, site=site)
    assert store.refs("checkpoint") == before
    rows = store.scan(study).collect().rows(named=True)
    expected = [(reference, *point) for reference in names for point in (("tiny-avg", 1), ("tiny", 2))]
    assert [(row["reference"], row["label"], row["seeds"]) for row in rows] == expected
    assert [row["difference"] is None for row in rows] == [True, False, False, True]
    assert rows[1]["difference"] == -rows[2]["difference"]
    assert rows[1]["mean"] == store.scan(swept).collect()["mean"][0]
    page = (store.fetch(study) / "sweep.md").read_text()
    assert page.startswith("# Recipes side by side; 2 seeds\n")
    assert "\n## stsb test (spearman, all), compared with tiny-avg\n" in page
    assert "\n## stsb test (spearman, all), compared with tiny\n" in page


@pytest.mark.slow
def test_sweep_page_names_the_reason_of_a_collapsed_point(store, alone):
    """Any fall of the rank stops the second; at that rate, whatever was learnt before is lost."""
    site = RunContext(store=store.url, device="cpu", threads=1)
    changes = {**alone, "training": {**alone["training"], "lr": 0.1}}
    strict = {"min_effective_rank": 1000, "patience": 1}
    asked = ablation("tiny", {"training.collapse": [None, strict]}, 1, changes, workers=2, site=site)
    rows = store.scan(asked).collect().rows(named=True)
    assert [(row["seeds"], row["mean"] is None) for row in rows] == [(1, False), (0, True)]
    page = (store.fetch(asked) / "sweep.md").read_text()
    assert ": seed 0: " in page
    assert "effective rank is below 1000" in page
    with pytest.raises(TrainingError, match="effective rank is below 1000"):  # of which nothing is left
        ablation("tiny", {"training.collapse": [strict]}, 1, changes, site=site)


def test_sweep_of_recipes_without_common_sets_raises_evaluation_error(tmp_path):
    with pytest.raises(
        EvaluationError, match=r"share no set.*isbert-mr on mr; isbert-cr on cr\)\. Set evaluation\.sets"
    ):
        ablation("isbert-mr", {"recipe": ["isbert-mr", "isbert-cr"]}, site=RunContext(store=str(tmp_path / "store")))
