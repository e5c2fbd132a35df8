"""Property tests of the seeded order: it is a bijection and equals the published splitmix64."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bsl.models.runtime.partitions import mix

U64 = st.integers(0, 2**64 - 1)


def splitmix64_reference(state):
    """Return one output of Vigna's public-domain splitmix64.c, in Python integers."""
    mask = 2**64 - 1
    z = (state + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@given(st.lists(U64, min_size=1), st.integers(0, 2**32))
def test_mix_equals_the_splitmix64_reference(numbers, seed):
    state = [(number + seed * 0x9E3779B97F4A7C15) % 2**64 for number in numbers]
    expected = [splitmix64_reference(number) for number in state]
    assert mix(np.array(numbers, dtype=np.uint64), seed).tolist() == expected


def test_mix_reproduces_the_published_splitmix64_outputs():
    first = [int(mix(np.array([0], dtype=np.uint64), seed)[0]) for seed in range(3)]
    assert first == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
