"""A flow receives complete settings: from Python, from changes in JSON, and from Prefect's form."""

import pytest
from prefect.exceptions import ParameterTypeError

from bsl.flows.adaptation import adapt
from bsl.flows.recipes.adaptation import AdaptConfig


def received(config):
    return adapt.validate_parameters({"texts": ["own.txt"], "config": config})["config"]


def test_changes_are_merged_into_the_default_settings():
    config = received({"views": "crops", "training": {"lr": 1e-3}})
    assert (config.views, config.training.lr) == ("crops", 1e-3)
    assert config.training.batch_size == AdaptConfig().training.batch_size


def test_settings_arrive_unchanged():
    config = AdaptConfig(views="both")
    assert received(config) is config
    assert received(None) is None


def test_empty_form_is_the_default_settings():
    assert received(dict.fromkeys(AdaptConfig.model_fields)) == AdaptConfig()


def test_unknown_field_error_names_the_nearest():
    with pytest.raises(ParameterTypeError, match=r"training\.lrr: unknown field\. Did you mean 'lr'\?"):
        received({"training": {"lrr": 1}})
