"""Docstring examples of the objectives run and print the stated output; every objective has one."""

import doctest
import importlib
import pkgutil

import pytest
import torch

from bsl.models import objectives
from bsl.models.objectives import config
from tests.every import every
from tests.tiny_encoder import every_field, pairs_of, tiny_encoder

OBJECTIVES = [settings.objective_class() for settings in config.OBJECTIVE_CONFIGS.values()]

MODULES = sorted(found.name for found in pkgutil.walk_packages(objectives.__path__, "bsl.models.objectives."))


@pytest.fixture
def names(tmp_path):
    """Return the names that examples assume: an encoder, its tokenizer, a batch with every field, all settings."""
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.1)
    batch = pairs_of(tokenizer, **every_field())
    objectives = {kind.__name__: kind for kind in OBJECTIVES}
    given = {"torch": torch, "encoder": encoder, "tokenizer": tokenizer, "batch": batch}
    return vars(config) | objectives | given


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_give_the_documented_output(module, names):
    torch.manual_seed(0)
    assert doctest.testmod(importlib.import_module(module), extraglobs=names).failed == 0


@every(OBJECTIVES)
def test_every_objective_has_a_docstring_example(kind):
    assert doctest.DocTestParser().get_examples(kind.__doc__)
