"""`--set` changes single fields; hostile settings are refused with a clear message."""

import re

import pytest

from bsl.flows.cli.terminal.overrides import changes_of, configured
from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.flows.run_context import run_context_of
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.transforms.config import FlowConfig
from tests.every import every

INFINITE = [
    setting.format(value)
    for value in ("Infinity", '"inf"', "1e999")
    for setting in (
        "training.lr={}",
        'augment.filters=[{{"name": "language", "odds": {}}}]',
        'augment.filters=[{{"name": "length", "ratio": {}}}]',
    )
]


@every(["training.objective=simcse", "training.objective.name=simcse"])
def test_changed_objective_name_replaces_the_objective_section(setting):
    config = configured("tiny", [setting, "training.lr=0.5"])
    assert config.training.objective == SimCSEConfig()
    path, _, value = setting.partition("=")
    section = value if path == "training.objective" else {"name": value}
    assert override(recipe("tiny"), {"training": {"objective": section, "lr": 0.5}}) == config


def test_fields_of_a_named_objective_or_transform_may_be_set_too():
    for order in (1, -1):
        settings = ["training.objective=contrastive", "training.objective.temperature=0.1"]
        assert configured("tiny", settings[::order]).training.objective == ContrastiveConfig(temperature=0.1)
    chosen = configured("tiny", ["transform=flow", "transform.epochs=2", "transform_on=targets"])
    assert (chosen.transform, chosen.transform_on) == (FlowConfig(epochs=2), "targets")
    assert chosen.result == "after BSL + in-batch negatives + flow (target)"


@every(
    [
        *((setting, r"finite number|less than|finite|not text") for setting in INFINITE),
        ("training.lr=NaN", r"^training\.lr: .*finite number"),
        ('augment.filters=[{"name": "length", "ratio": NaN}]', r"ratio: .*finite number"),
        (f"{'a.' * 10_000}b=1", "expected FIELD=VALUE"),
        (f"training.lr={'[' * 100_000}", "nested too deeply"),
        ("training.lr=" + '{"a":' * 100_000, "nested too deeply"),
        ("title=a\udcffb", r"title.* [uU]nicode"),  # such as the undecodable bytes of a command line
        (f"training.seed={'9' * 5000}", r"training\.seed"),
        ("training.objective.momentum=2", r"momentum: Input should be less than or equal to 1 \(found 2\)"),
    ]
)
def test_hostile_or_wrong_setting_is_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        configured("tiny", [setting])


def test_unknown_field_of_a_new_objective_is_compared_with_its_own_fields():
    settings = ["training.objective.name=simcse", "training.objective.temperatur=0.1"]
    with pytest.raises(
        ValueError,
        match=r"^training.objective.temperatur: unknown field. Did you mean 'training.objective.temp.*, head$",
    ):
        configured("tiny", settings)


@every([("training.lr=1e-4",), ("training.lr=1e-4", "training.seed=3")])
def test_untrained_recipe_rejects_training_fields_without_an_objective(*change):
    told = r"training\.lr.*: recipe bert-avg does not train\. Set training\.objective as well"
    with pytest.raises(ValueError, match=told):
        configured("bert-avg", change)
    trained = configured("bert-avg", [*change, "training.objective=simcse"])
    assert (trained.training.lr, trained.training.objective.name) == (1e-4, "simcse")


@every(
    [
        ("training.lr=1", "training.lr=2"),
        ("training.objective=bsl", "training.objective=simcse"),
        ("training.collapse=null", "training.collapse=5"),
        ('training={"lr": 1}', "training.seed=3", "training.lr=2"),
        ("training.seed=3", "training.lr=1", 'training={"lr": 2}'),
    ]
)
def test_different_values_of_a_field_are_refused(*settings):
    """Regression: the last one was used, in silence."""
    first, last = (one for one in settings if "seed" not in one)
    with pytest.raises(ValueError, match=f"^{re.escape(f'--set {last} and --set {first}')} contradict each other"):
        changes_of(settings)


def test_settings_of_one_section_are_merged_in_any_order():
    """Regression: a section replaced the fields that were set inside its sections before."""
    settings = [
        "training.objective.temperature=1",
        'training={"objective": {"momentum": 0.9}}',
        "training.lr=3",
        "training.lr=3",
    ]
    for order in (1, -1):
        assert changes_of(settings[::order]) == {
            "training": {"objective": {"temperature": 1, "momentum": 0.9}, "lr": 3}
        }


def test_name_of_an_objective_in_a_section_is_that_of_its_own_setting():
    settings = ['training={"objective": "bsl"}', "training.objective=bsl", "training.objective.momentum=0.9"]
    for order in (1, -1):
        assert changes_of(settings[::order]) == {"training": {"objective": {"name": "bsl", "momentum": 0.9}}}


def test_values_are_json_or_plain_text():
    settings = ["a.lr=3e-4", "a.rate=.001", "a.low=-.5", "a.epochs=2", "a.collapse=null", 'title=""', "name=x"]
    section = {"lr": 3e-4, "rate": 0.001, "low": -0.5, "epochs": 2, "collapse": None}
    assert changes_of(settings) == {"a": section, "title": "", "name": "x"}
    with pytest.raises(ValueError, match="at least 1 character"):
        run_context_of({"store": ""})
