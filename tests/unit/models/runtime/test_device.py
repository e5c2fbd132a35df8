"""Copies of arrays to a device and back."""

import numpy as np
import torch

from bsl.models.runtime.device import Download, prefetch_one, uploaded


def test_prefetch_one_yields_after_making_the_next_item():
    made = []
    seen = []
    for item in prefetch_one(made.append(number) or number for number in range(4)):
        seen.append((item, len(made)))
    assert seen == [(0, 2), (1, 3), (2, 4), (3, 4)]


def test_prefetch_one_accepts_single_item_and_empty_iterators():
    assert list(prefetch_one(iter([7]))) == [7]
    assert list(prefetch_one(iter([]))) == []


def test_upload_and_download_preserve_the_array():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (Download(uploaded(array, torch.device("cpu"))).numpy() == array).all()
