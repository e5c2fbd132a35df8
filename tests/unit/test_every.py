"""Tests with `every` list all failing rows of a table, and fail on an empty table."""

import pytest

from tests.every import every


def test_every_lists_all_failing_rows():
    @every([(1, 1), (2, 3), (4, 5)])
    def equal(one, two):
        assert one == two, "differ"

    with pytest.raises(AssertionError, match=r"2 of 3 fail:\n2, 3: differ(.*\n)+4, 5: differ"):
        equal()


def test_every_fails_on_an_empty_table():
    with pytest.raises(AssertionError, match="no case"):
        every([])(print)()
