"""Prefect's form offers every field as optional, and a flow receives only the changes, or complete settings."""

from functools import cache

import pytest
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import ValidationError, validate
from pydantic import TypeAdapter

from bsl.flows.adaptation import adapt
from bsl.flows.config import PipelineConfig, override
from bsl.flows.evaluation import evaluation
from bsl.flows.pipeline import Overrides, pipeline
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.config import EncoderConfig
from bsl.models.training.config import TrainingConfig
from tests.every import every


def test_form_offers_every_field_as_optional_and_names_an_objective():
    schema = TypeAdapter(Overrides).json_schema()
    assert set(schema["properties"]) == set(PipelineConfig.model_fields)
    assert "required" not in schema
    chosen = schema["$defs"]["SimCSEConfigOverrides"]
    assert (chosen["title"], chosen["properties"]["name"]["default"]) == ("simcse", "simcse")
    assert schema["$defs"]["TrainingConfigOverrides"]["title"] == "Change"


@cache
def form_of(flow):
    return parameter_schema(flow.fn).model_dump()


@every(
    [
        (pipeline, {"recipe_name": "tiny", "overrides": {"training": {"lr": 0.1}}}, {"training": {"momentun": 1}}),
        (pipeline, {"recipe_name": "tiny", "overrides": {}}, {"trainig": {}}),
        (evaluation, {"suite": ["a"], "models": ["a"]}, []),
        (evaluation, {"models": ["a"], "suite": ["a"]}, []),
        (adapt, {"texts": ["a"]}, []),
    ]
)
def test_form_rejects_unknown_fields_and_empty_lists(flow, accepted, wrong):
    form, last = form_of(flow), list(accepted)[-1]
    assert not validate(accepted, form)
    with pytest.raises(ValidationError, match="Additional properties are not allowed" if wrong else last):
        validate(accepted | {last: wrong}, form, raise_on_error=True)


@every([pipeline, evaluation, adapt])
def test_every_field_of_a_form_has_a_title_because_prefect_calls_others_field(flow):
    form = form_of(flow)
    fields = {
        (section, name): field
        for section, schema in [("", form), *form["definitions"].items()]
        for name, field in schema.get("properties", {}).items()
    }
    assert fields
    assert [key for key, field in fields.items() if not field.get("title")] == []


def test_nulls_of_a_form_are_no_changes_but_explicit_nulls_are():
    sent = dict.fromkeys(PipelineConfig.model_fields) | {"encoder": dict.fromkeys(EncoderConfig.model_fields)}
    sent["training"] = dict.fromkeys(TrainingConfig.model_fields) | {"lr": 0.5}
    changes = TypeAdapter(Overrides).validate_python(sent)
    assert changes == {"training": {"lr": 0.5}}
    assert override(recipe("tiny"), changes).training.lr == 0.5
    given = {"training": {"collapse": None}, "evaluation": None}
    assert TypeAdapter(Overrides).validate_python(given) == given


def test_settings_of_a_flow_may_be_complete_changes_or_an_empty_form():
    def received(config):
        return adapt.validate_parameters({"texts": ["own.txt"], "config": config})["config"]

    config = received({"views": "crops", "training": {"lr": 1e-3}})
    assert (config.views, config.training.lr) == ("crops", 1e-3)
    assert config.training.batch_size == AdaptConfig().training.batch_size
    assert received(config) is config
    assert received(None) is None
    assert received(dict.fromkeys(AdaptConfig.model_fields)) == AdaptConfig()
    with pytest.raises(ParameterTypeError, match=r"training\.lrr: unknown field\. Did you mean 'training\.lr'\?"):
        received({"training": {"lrr": 1}})
