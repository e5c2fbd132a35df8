"""Values in messages are short and on one line."""

import numpy as np
import pytest

from bsl.storage.filesystem.values import MOST, brief, described, require_name
from tests.every import every


@every([np.zeros((500, 384)), list(range(10_000)), "long " * 1000, {"a": "x\n" * 500}, object(), None, b"x" * 999])
def test_value_is_one_short_line(value):
    text = brief(value)
    assert len(text) <= MOST
    assert "\n" not in text


def test_short_value_is_complete():
    assert brief("a.csv") == "'a.csv'"
    assert described([1, 2]) == "a list ([1, 2])"


def test_name_is_at_most_as_long_as_a_path():
    assert require_name("x" * 4096, "file") == "x" * 4096
    with pytest.raises(ValueError, match=r"file is 'x+.* of 4,097 characters, expected a name or path"):
        require_name("x" * 4097, "file")
