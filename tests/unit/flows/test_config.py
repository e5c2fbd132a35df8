"""Recipes are complete and reject unknown fields; overrides are merged field by field."""

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import ValidationError, validate
from pydantic import TypeAdapter

from bsl.flows.adaptation import adapt
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.config import PipelineConfig, override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import Overrides, pipeline
from bsl.flows.recipes import RECIPES, recipe
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.contrastive_config import SimCSEConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.transforms.config import FlowConfig, WhiteningConfig
from tests.every import every


@every(sorted(RECIPES))
def test_every_recipe_has_title_docstring_and_valid_config(name):
    config = recipe(name)
    assert override(config, {}) == config
    assert config.title.startswith(f"{name}:")
    assert RECIPES[name].__doc__


def test_override_of_a_field_leaves_other_fields_unchanged():
    base = recipe("tiny")
    changed = override(base, {"training": {"objective": {"momentum": 0.5}}})
    assert changed.training.objective.momentum == 0.5
    assert changed.training.objective.target_norm == base.training.objective.target_norm
    assert changed.model_copy(update={"training": base.training}) == base


def test_changed_model_drops_the_previous_revision():
    base = recipe("nli")
    assert base.encoder.revision
    assert override(base, {"encoder": {"model": "other/model"}}).encoder.revision is None
    pinned = override(base, {"encoder": {"model": "other/model", "revision": "main"}})
    assert pinned.encoder.revision == "main"
    assert override(base, {"encoder": {"pooling": "cls"}}).encoder.revision == base.encoder.revision
    assert override(base, {"encoder": {"model": base.encoder.model}}).encoder == base.encoder


def test_override_model_offers_every_field_as_optional():
    schema = TypeAdapter(Overrides).json_schema()
    assert set(schema["properties"]) == set(type(recipe("tiny")).model_fields)
    assert "required" not in schema


@pytest.mark.parametrize("where", [{"training": {"momentun": 1}}, {"trainig": {}}])
def test_prefect_form_schema_rejects_unknown_fields(where):
    form = parameter_schema(pipeline.fn).model_dump()
    assert not validate({"recipe_name": "tiny", "overrides": {"training": {"lr": 0.1}}}, form)
    with pytest.raises(ValidationError, match="Additional properties are not allowed"):
        validate({"recipe_name": "tiny", "overrides": where}, form, raise_on_error=True)


@every([(evaluation, "models"), (evaluation, "suite"), (adapt, "texts")])
def test_prefect_form_schema_rejects_empty_lists(flow, name):
    form = parameter_schema(flow.fn).model_dump()
    given = {parameter: ["a"] for parameter in form["required"]}
    assert not validate(given, form)
    with pytest.raises(ValidationError, match=name):
        validate(given | {name: []}, form, raise_on_error=True)


def test_invalid_set_value_error_names_field_and_value():
    with pytest.raises(
        ValueError, match=r"training.objective.momentum: Input should be less than or equal to 1 \(found 2\)"
    ):
        configured("tiny", ["training.objective.momentum=2"])


@pytest.mark.parametrize(
    ("setting", "found"), [("training.lr=3e-4", 3e-4), ("training.lr=0.001", 0.001), ("training.epochs=2", 2)]
)
def test_set_parses_numbers(setting, found):
    config = configured("tiny", [setting])
    assert getattr(config.training, setting.partition("=")[0].rpartition(".")[2]) == found


def test_set_without_value_is_rejected():
    with pytest.raises(ValueError, match="expected FIELD=VALUE"):
        configured("tiny", ["training.lr"])


@pytest.mark.parametrize("setting", ["training.objective=simcse", "training.objective.name=simcse"])
def test_changed_objective_name_replaces_the_objective_section(setting):
    config = configured("tiny", [setting, "training.lr=0.5"])
    assert config.training.objective == SimCSEConfig()
    path, _, value = setting.partition("=")
    section = value if path == "training.objective" else {"name": value}
    form = {"training": {"objective": section, "lr": 0.5}}
    assert override(recipe("tiny"), form) == config


def test_setting_the_current_objective_name_changes_nothing():
    own = {"training": {"objective": "bsl"}}
    assert override(recipe("tiny"), own) == configured("tiny", ["training.objective=bsl"]) == recipe("tiny")
    assert override(recipe("tiny-flow"), {"transform": "flow"}) == recipe("tiny-flow")


def test_unknown_objective_field_error_lists_fields_of_new_objective():
    settings = ["training.objective.name=simcse", "training.objective.temperatur=0.1"]
    with pytest.raises(
        ValueError, match=r"^training.objective.temperatur: unknown field. Did you mean 'temperature'"
    ) as e:
        configured("tiny", settings)
    assert str(e.value).endswith("Fields: name, dims, temperature, head")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("kernel=1", "encoder.cnn.kernel: unknown field. Did you mean 'kernels'? Fields: kernels, channels, relu"),
        ("width=1", "encoder.cnn.width: unknown field. Fields: kernels, channels, relu"),
    ],
)
def test_unknown_field_of_empty_section_error_lists_its_fields(setting: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"unknown field") as e:
        configured("tiny", [f"encoder.cnn.{setting}"])
    assert str(e.value) == told


def test_override_merges_transform_fields_and_name_replaces_transform():
    flow = recipe("tiny-flow")
    assert override(flow, {"transform": {"lr": 0.01}}).transform == flow.transform.model_copy(update={"lr": 0.01})
    form = {"transform": {"lr": 0.01}}
    assert override(flow, form) == override(flow, {"transform": {"lr": 0.01}})
    assert override(flow, {"transform": "whitening"}).transform == WhiteningConfig()
    chosen = configured("tiny", ["transform=flow", "transform.epochs=2", "transform_on=targets"])
    assert (chosen.transform, chosen.transform_on) == (FlowConfig(epochs=2), "targets")
    assert chosen.result == "after BSL + in-batch negatives + flow (target)"


@pytest.mark.parametrize("change", [["training.lr=1e-4"], ["training.lr=1e-4", "training.seed=3"]])
def test_untrained_recipe_rejects_training_fields_without_an_objective(change):
    with pytest.raises(
        ValueError, match=r"training\.lr.*: recipe bert-avg does not train\. Set training\.objective as well"
    ):
        configured("bert-avg", change)
    with pytest.raises(ValueError, match="bert-avg does not train"):
        override(recipe("bert-avg"), {"training": {"lr": 1e-4}})
    trained = configured("bert-avg", [*change, "training.objective=simcse"])
    assert (trained.training.lr, trained.training.objective.name) == (1e-4, "simcse")


def test_empty_form_fields_leave_recipe_values_unchanged():
    # As Prefect's form sends it: every field of an opened section, null where nothing was entered.
    sent = dict.fromkeys(PipelineConfig.model_fields)
    sent["training"] = dict.fromkeys(TrainingConfig.model_fields) | {"lr": 0.5}
    sent["encoder"] = dict.fromkeys(EncoderConfig.model_fields)
    changes = TypeAdapter(Overrides).validate_python(sent)
    assert changes == {"training": {"lr": 0.5}}
    assert override(recipe("tiny"), changes) == override(recipe("tiny"), {"training": {"lr": 0.5}})


def test_explicit_null_override_is_preserved():
    given = {"training": {"collapse": None}, "evaluation": None}
    assert TypeAdapter(Overrides).validate_python(given) == given


def test_objective_form_schema_has_its_name_as_default():
    definitions = TypeAdapter(Overrides).json_schema()["$defs"]
    chosen = definitions["SimCSEConfigOverrides"]
    assert (chosen["title"], chosen["properties"]["name"]["default"]) == ("simcse", "simcse")
    assert definitions["TrainingConfigOverrides"]["title"] == "Change"
