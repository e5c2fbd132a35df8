"""The table of methods: every point resolves, budgets are read, rates fit what training starts from."""

import pytest

from flows.cli.main import main
from flows.field import contested
from flows.recipes.field import (
    METHODS,
    NAMES,
    START,
    Budget,
    FieldSettings,
    augmentation,
    budget_of,
    methods_of,
    pairing,
)
from models.baselines.config import FlowConfig, WhiteningConfig
from models.translation.catalog import MINI, OPUS_MT

TRAINED = [method for method in METHODS if method.objective is not None]


@pytest.mark.parametrize("method", TRAINED, ids=lambda method: method.name)
def test_a_method_takes_the_budget_and_keeps_its_last_step(method):
    for start in ("small", "raw", "trained"):
        config = method.configured(start, 123, seed=7)
        assert (config.max_steps, config.select, config.seed) == (123, "last", 7)
        assert config.lr == getattr(method.rates, start)
        assert config.collapse is None, "a field shows what collapsed"
    assert method.rates.trained <= method.rates.raw * 2 <= method.rates.small * 2


@pytest.mark.parametrize("method", [m for m in TRAINED if m.views != "labels"], ids=lambda method: method.name)
def test_a_method_s_pairs_are_of_views_that_it_makes(method):
    made = {"original", *augmentation(method.views, MINI).methods}
    assert {name for pair in pairing(method.views).pairings for name in (pair.view_1, pair.view_2)} <= made


def test_methods_of_one_view_share_it():
    assert augmentation("round trips", MINI) == augmentation("round trips", MINI)
    assert augmentation("round trips", MINI) != augmentation("round trips", OPUS_MT)


def test_a_transform_takes_half_of_the_width_or_the_budget():
    by_name = {method.name: method for method in METHODS}
    assert by_name["whitening"].fitted(256, 9) == WhiteningConfig(dimensions=128)
    fitted = by_name["flow"].fitted(256, 9, seed=3)
    assert (fitted.max_steps, fitted.seed) == (9, 3)
    assert fitted.epochs > FlowConfig().epochs
    assert [method.name for method in METHODS if method.transform and method.steps] == ["flow"]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("90s", Budget(seconds=90)),
        ("10m", Budget(seconds=600)),
        ("1.5h", Budget(seconds=5400)),
        ("200steps", Budget(steps=200)),
    ],
)
def test_a_budget_is_read(text, budget):
    assert budget_of(text) == budget


@pytest.mark.parametrize("text", ["10", "ten minutes", "1.5steps", "-3s", ""])
def test_another_form_of_budget_is_refused(text):
    with pytest.raises(ValueError, match="expected seconds, minutes, hours or steps"):
        budget_of(text)


def test_a_budget_is_seconds_or_steps():
    with pytest.raises(ValueError, match="expected one of them"):
        Budget(seconds=3, steps=3)


def test_the_start_is_always_there_and_first_and_order_is_the_table_s():
    assert [method.name for method in methods_of(["simcse", "tfidf"])] == [START, "tfidf", "simcse"]
    assert [method.name for method in methods_of(None)] == list(NAMES)


def test_an_unknown_method_is_refused_with_the_nearest(capsys):
    assert main(["field", "x.txt", "--methods", "simcs"]) == 2
    assert "Did you mean 'simcse'" in capsys.readouterr().err


def test_labels_are_tried_only_where_there_are_some():
    assert "labels" not in [method.name for method in contested(FieldSettings(), None)]
    with pytest.raises(ValueError, match="learns labels, and there are none"):
        contested(FieldSettings(methods=("labels",)), None)
