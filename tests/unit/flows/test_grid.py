"""From axes to configurations: every combination, named, with the paper's figure at its own points."""

import pytest

from flows.cli.main import main
from flows.cli.sweep import axes_of
from flows.recipes.grid import grid
from flows.recipes.studies import STUDIES
from models.objectives.contrastive_config import ContrastiveConfig


def test_momentum_has_the_printed_curve_and_does_not_stop_at_collapse():
    asked = grid("momentum", {}, {})
    assert [(point.label, point.published) for point in asked.points] == [
        ("momentum 0.5", 33.18), ("momentum 0.9", 69.58), ("momentum 0.99", 72.51), ("momentum 0.999", 73.74),
        ("momentum 1", 68.19),
    ]  # fmt: skip
    assert [config.training.objective.momentum for config in asked.configs] == [0.5, 0.9, 0.99, 0.999, 1]
    assert all(config.training.collapse is None for config in asked.configs)


def test_batch_has_two_lines_over_one_axis():
    asked = grid("batch", {}, {})
    assert asked.axis == "training.batch_size"
    assert {point.line for point in asked.points} == {"objective bsl", "objective contrastive"}
    assert [point.published for point in asked.points][:5] == [69.21, 71.08, 72.02, 72.01, 68.18]
    assert asked.configs[4].training.objective == ContrastiveConfig()
    assert asked.configs[4].training.batch_size == 16


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_resolves_and_what_it_says_is_printed_is_printed(name):
    asked = grid(name, {}, {})
    assert len(asked.points) == len(asked.configs) > 1
    if STUDIES[name].row:
        assert all(point.published is not None for point in asked.points)


def test_recipes_are_an_axis_and_own_changes_reach_every_point():
    asked = grid("tiny", {"recipe": ["tiny", "tiny-entail"]}, {"training": {"max_steps": 7}})
    assert [config.title.partition(":")[0] for config in asked.configs] == ["tiny", "tiny-entail"]
    assert [config.training.max_steps for config in asked.configs] == [7, 7]
    assert [point.published for point in asked.points] == [None, None]


def test_own_axes_take_the_place_of_a_study_s_and_lose_its_printed_curve():
    asked = grid("momentum", {"training.objective.momentum": [0.3]}, {})
    assert [(point.label, point.published) for point in asked.points] == [("momentum 0.3", None)]


@pytest.mark.parametrize(
    ("name", "over", "message"),
    [
        ("momentun", {}, "no study is called 'momentun'.*Did you mean 'momentum'"),
        ("tiny", {}, "tiny is a recipe, of which nothing is to be varied; give --over"),
        ("tiny", {"training.lr": [1e-3, 1e-3]}, "training.lr: found values .*each once"),
        ("tiny", {"training.lr": []}, "training.lr: found values .*one or more"),
        ("tiny", {"training.lrr": [1]}, "lrr"),
        ("tiny", {"recipe": ["tiny-flow", "tiny-flow-target"]}, "tiny-flow-target.*expected transform_on=corpus"),
    ],
)
def test_what_cannot_be_varied_is_refused(name, over, message):
    with pytest.raises(ValueError, match=message):
        grid(name, over, {})


def test_values_are_read_as_settings_are():
    assert axes_of(["training.lr=1e-4,3e-4", "recipe=nli,entail"]) == {
        "training.lr": [1e-4, 3e-4],
        "recipe": ["nli", "entail"],
    }
    assert axes_of(['evaluation.sets=[["sts"],["senteval"]]']) == {"evaluation.sets": [["sts"], ["senteval"]]}


@pytest.mark.parametrize("options", [["training.lr"], ["training.lr="], ["a=1", "a=2"]])
def test_an_axis_of_another_form_is_refused(options):
    with pytest.raises(ValueError, match="expected each field once as FIELD=VALUE,VALUE"):
        axes_of(options)


def test_the_command_says_what_is_wrong_before_anything_starts(capsys):
    assert main(["sweep", "tiny", "--over", "training.lr=abc"]) == 2
    assert main(["sweep", "tiny", "--over", "training.lr=1", "--seeds", "0"]) == 2
    assert "--seeds 0: expected 1 or more" in capsys.readouterr().err
