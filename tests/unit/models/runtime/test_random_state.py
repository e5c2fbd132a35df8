"""Seeded draws do not depend on draws of other threads from the same generators."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from bsl.models.runtime.random_state import seeded


def drawn(seed):
    """Return numbers from both generators, with pauses that let other threads run."""
    found = []
    with seeded(seed):
        for _ in range(20):
            found += [float(torch.rand(())), float(np.random.rand())]  # noqa: NPY002  the global one
            time.sleep(0.001)
    return found


def test_concurrent_seeded_blocks_draw_the_same_as_alone():
    alone = [drawn(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(drawn, range(4))) == alone


def test_nested_seeded_block_restores_the_outer_random_state():
    with seeded(0):
        expected = float(torch.rand(()))
    with seeded(0):
        drawn(1)
        assert float(torch.rand(())) == expected
