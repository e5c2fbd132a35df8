"""Values in messages are short and on one line."""

import numpy as np

from bsl.storage.filesystem.values import MOST, brief, described
from tests.every import every


@every([np.zeros((500, 384)), list(range(10_000)), "long " * 1000, {"a": "x\n" * 500}, object(), None, b"x" * 999])
def test_value_is_one_short_line(value):
    text = brief(value)
    assert len(text) <= MOST
    assert "\n" not in text


def test_short_value_is_complete():
    assert brief("a.csv") == "'a.csv'"
    assert described([1, 2]) == "a list ([1, 2])"
