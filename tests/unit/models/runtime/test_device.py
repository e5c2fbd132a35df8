"""Copies of arrays to a device and back."""

import numpy as np
import torch

from models.runtime.device import Download, one_ahead, uploaded


def test_each_item_comes_after_the_next_was_made():
    made = []
    seen = []
    for item in one_ahead(made.append(number) or number for number in range(4)):
        seen.append((item, len(made)))
    assert seen == [(0, 2), (1, 3), (2, 4), (3, 4)]


def test_there_may_be_one_item_or_none():
    assert list(one_ahead(iter([7]))) == [7]
    assert list(one_ahead(iter([]))) == []


def test_there_and_back_again():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (Download(uploaded(array, torch.device("cpu"))).numpy() == array).all()
