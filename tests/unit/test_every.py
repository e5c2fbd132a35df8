"""Tests with `every` list all failing rows of a table, and fail on an empty table."""

import pytest

from tests.every import every


def test_every_lists_all_failing_rows():
    @every([(1, 1), (2, 3), (4, 5)])
    def equal(one, two):
        assert one == two, "differ"

    with pytest.raises(AssertionError, match=r"2 of 3 fail:\n2, 3: differ(.*\n)+4, 5: differ"):
        equal()


def test_what_a_row_raises_is_raised_with_the_row():
    @every([1, 0])
    def divided(number):
        assert 1 / number

    with pytest.raises(ZeroDivisionError) as caught:
        divided()
    assert caught.value.__notes__ == ["case: 0"]


def test_every_fails_on_an_empty_table():
    with pytest.raises(AssertionError, match="no case"):
        every([])(print)()
