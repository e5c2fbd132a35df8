"""Counts, sizes and p-values are formatted for readers."""

from bsl.tasks.rendering.numbers import counted, p_value, sized
from tests.every import every


@every(
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (4_140, "4.1 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_799_999_999, "1.8 GB"),
        (5e12, "5000.0 GB"),
    ]
)
def test_sized_formats_bytes_with_units(count, text):
    assert sized(count) == text


def test_count_of_one_has_a_singular_noun():
    assert [counted(count, "seed") for count in (0, 1, 1024)] == ["0 seeds", "1 seed", "1,024 seeds"]


@every(
    [
        (None, None, ""),
        (0.0, None, "<0.001"),
        (0.0004, None, "<0.001"),
        (0.0005, None, "0.001"),
        (0.0312, None, "0.031"),
        (None, 1000, ""),
        (2 / 1001, 1000, "≤ 0.002"),
        (4 / 1001, 1000, "0.004"),
        (2 / 151, 150, "≤ 0.02"),
        (2 / 100_001, 100_000, "≤ 2e-05"),
    ]
)
def test_p_value_is_never_zero_and_at_the_floor_of_the_draws_a_bound(value, draws, text):
    """Regression: p 0.002 of 1,000 draws, the smallest that they can show."""
    assert p_value(value, draws) == text
