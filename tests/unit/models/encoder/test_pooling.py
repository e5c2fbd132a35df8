"""Poolings by name: one, several joined, and names that are refused."""

import pytest
import torch
from pydantic import ValidationError

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.pooling import POOLINGS, pooling_of
from tests.every import every

TOKENS_BTD = torch.tensor([[[1.0, 2.0], [3.0, 0.0], [99.0, 99.0]]])
MASK_BT = torch.tensor([[1, 1, 0]])


@every(POOLINGS)
def test_settings_accept_every_pooling(name):
    assert EncoderConfig(model="x", pooling=name).pooling == pooling_of(name).name == name


def test_joined_poolings_concatenate_their_vectors_in_the_given_order():
    pooling = pooling_of("max+cls+mean")
    assert pooling.pool(TOKENS_BTD, MASK_BT).tolist() == [[3.0, 2.0, 1.0, 2.0, 2.0, 1.0]]
    assert [mode.name for mode in pooling.modes] == ["max", "cls", "mean"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("men", r"unknown pooling 'men', expected mean, cls, .* joined by \+\. Did you mean 'mean'\?"),
        ("cls+", "unknown pooling '', expected mean"),
        ("cls+maxx", r"unknown pooling 'maxx', .* Did you mean 'max'\?"),
        ("cls+first-last", "pooling first-last cannot be joined, expected mean"),
    ],
)
def test_other_names_are_refused_with_the_closest_one(name, message):
    with pytest.raises(ValidationError, match=message):
        EncoderConfig(model="x", pooling=name)
