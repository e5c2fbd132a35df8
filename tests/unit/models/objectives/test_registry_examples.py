"""Docstring examples of the objectives run and print the stated output; every objective has one."""

import doctest
import importlib
import pkgutil

import pytest
import torch

import models.objectives
from models.objectives import config
from models.objectives.info_nce import VectorQueue
from models.objectives.matryoshka import Matryoshka
from models.objectives.registry import OBJECTIVES
from tests.every import every
from tests.tiny_encoder import every_field, pairs_of, tiny_encoder

MODULES = sorted(found.name for found in pkgutil.walk_packages(models.objectives.__path__, "models.objectives."))


@pytest.fixture
def names(tmp_path):
    """Return the names that examples assume: an encoder, its tokenizer, a batch with every field, all settings."""
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.1)
    batch = pairs_of(tokenizer, **every_field())
    objectives = {kind.__name__: kind for kind in OBJECTIVES.values()}
    given = {"torch": torch, "encoder": encoder, "tokenizer": tokenizer, "batch": batch, "VectorQueue": VectorQueue}
    return vars(config) | objectives | given


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_give_the_documented_output(module, names):
    torch.manual_seed(0)
    assert doctest.testmod(importlib.import_module(module), extraglobs=names).failed == 0


@every([*OBJECTIVES.values(), Matryoshka])
def test_every_objective_has_a_docstring_example(kind):
    assert doctest.DocTestParser().get_examples(kind.__doc__)
