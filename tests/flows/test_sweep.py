"""A sweep: points share what they can, one more value costs itself alone, lanes change nothing."""

import pytest

from flows.sweep import ablation
from storage.store import Store
from tasks.site import Site

MOMENTUM = "training.objective.momentum"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(str(tmp_path_factory.mktemp("sweep") / "store"))


@pytest.fixture(scope="module")
def swept(store, alone):
    site = Site(store=store.url, device="cpu", threads=1)
    return ablation("tiny", {MOMENTUM: [0.5, 1.0]}, 2, alone, site=site)


def test_every_point_has_its_figure_over_seeds_and_its_difference(store, swept):
    table = store.scan(swept).collect()
    assert table["label"].to_list() == ["momentum 0.5", "momentum 1.0"]
    assert table["seeds"].to_list() == [2, 2]
    assert table["difference"].is_null().to_list() == [True, False]
    second = table.row(1, named=True)
    assert second["difference_low"] <= second["difference"] <= second["difference_high"]
    assert second["mean"] - table["mean"][0] == pytest.approx(second["difference"])
    folder = store.fetch(swept)
    assert (folder / "study.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "study.md").read_text()
    assert page.startswith("# tiny over training.objective.momentum; 2 seeds\n")
    assert "| momentum 1.0 | stsb test | spearman, all |" in page


def test_recipes_stand_side_by_side_each_beside_every_reference(store, swept, alone):
    site = Site(store=store.url, device="cpu", threads=1)
    names = ["tiny-avg", "tiny", "tiny-contrastive"]
    study = ablation("tiny-avg", {"recipe": names}, 2, alone, against=names[:2], site=site)
    table = store.scan(study).collect()
    places = [(row["reference"], row["label"], row["seeds"]) for row in table.iter_rows(named=True)]
    expected = [("tiny-avg", 1), ("tiny", 2), ("tiny-contrastive", 2)]  # what draws nothing is run once
    assert places == [(reference, *point) for reference in names[:2] for point in expected]
    assert table["difference"].is_null().to_list() == [True, False, False, False, True, False]
    page = (store.fetch(study) / "study.md").read_text()
    assert page.startswith("# Recipes side by side; 2 seeds\n")
    assert "## stsb test, beside tiny-avg" in page
    assert "## stsb test, beside tiny\n" in page


def test_points_share_what_comes_before_training(store, swept):
    kinds = [ref.kind for ref in store.refs()]
    assert [kinds.count(kind) for kind in ("corpus", "views", "pairs", "checkpoint")] == [1, 1, 1, 4]


def test_one_more_value_trains_that_value_alone_and_lanes_change_nothing(store, swept, alone):
    before = {ref.key for ref in store.refs("checkpoint")}
    site = Site(store=store.url, device="cpu", threads=1)
    more = ablation("tiny", {MOMENTUM: [0.5, 1.0, 0.9]}, 2, alone, lanes=2, site=site)
    assert len({ref.key for ref in store.refs("checkpoint")} - before) == 2
    assert store.scan(more).collect()["mean"][:2].to_list() == store.scan(swept).collect()["mean"].to_list()
