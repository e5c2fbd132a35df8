"""Verdicts on measured figures compared with published ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.reproduction import MOST, compare, estimate_over_seeds, overall, seeds_for
from bsl.models.evaluation.significance.seeds import half_width
from tests.every import every


def of(*values: float):
    """Return a figure of seeds, given × 100, whose bootstrap interval extends 0.8 to either side."""
    return estimate_over_seeds([[(value / 100, value / 100 - 0.008, value / 100 + 0.008) for value in values]])


THREE = (71.0, 71.3, 71.6)


@every(
    [
        ((71.0,), 73.74, {}, "INCONCLUSIVE", 2),
        ((71.0, 71.6), 73.74, {}, "INCONCLUSIVE", 3),  # t 2.92 · 0.424 / √3 = 0.72 is less than 73.74 - 1 - 71.3 = 1.44
        # The whole interval must be on one side: half-width 2.92 · 0.3 / √3 = 0.5058.
        (THREE, 71.79, {}, "REPRODUCED", None),
        (THREE, 71.81, {}, "INCONCLUSIVE", 4),
        (THREE, 72.81, {}, "BELOW", None),
        (THREE, 70.81, {}, "REPRODUCED", None),
        (THREE, 70.79, {}, "INCONCLUSIVE", 4),
        (THREE, 69.79, {}, "ABOVE", None),
        (THREE, 72.81, {"margin": 10}, "REPRODUCED", None),
        (THREE, 71.3, {"margin": 0.1}, "INCONCLUSIVE", 27),
        # A score without draws is decided by one run.
        ((71.0,), 72.0, {"draws": False}, "REPRODUCED", None),
        ((71.0,), 72.01, {"draws": False}, "BELOW", None),
        ((71.0, 71.0), 69.9, {}, "ABOVE", None),  # no variance over seeds
    ]
)
def test_verdict_requires_whole_interval_on_one_side_of_margin(values, published, options, said, needed):
    found = compare(of(*values), published, **options)
    assert (found.verdict, found.needed) == (said, needed)
    if values == THREE:
        half = 2.919986 * 0.3 / 3**0.5
        assert found.interval == pytest.approx((71.3 - half, 71.3 + half), abs=1e-5)


@given(st.floats(0.01, 3), st.floats(0.01, 5))
def test_seeds_for_returns_the_smallest_sufficient_number(sd, room):
    needed = seeds_for(sd, room)
    if needed is None:
        assert half_width(sd, MOST, 0.9) >= room
    else:
        assert half_width(sd, needed, 0.9) < room
        assert needed == 2 or half_width(sd, needed - 1, 0.9) >= room


def test_seed_and_pair_errors_add_in_quadrature():
    figure = estimate_over_seeds([[(0.70, 0.68, 0.71), (0.72, 0.70, 0.73), (0.77, 0.75, 0.78)]])
    assert figure.mean == pytest.approx(0.73)
    assert figure.sd == pytest.approx(np.std([0.70, 0.72, 0.77], ddof=1))
    margin = 4.3027 * figure.sd / 3**0.5  # Student's t with 2 degrees of freedom
    assert figure.ci_low == pytest.approx(0.73 - np.hypot(margin, 0.02), abs=1e-5)
    assert figure.ci_high == pytest.approx(0.73 + np.hypot(margin, 0.01), abs=1e-5)


def test_estimate_averages_sets_within_each_seed():
    first = [(0.6, 0.57, 0.64), (0.7, 0.67, 0.74)]
    second = [(0.8, 0.76, 0.83), (0.7, 0.66, 0.73)]
    mean = estimate_over_seeds([first, second])
    assert (mean.mean, mean.seeds) == (pytest.approx(0.7), 2)
    assert mean.sd == pytest.approx(0)  # one set gains as much as the other loses
    assert (mean.ci_low, mean.ci_high) == pytest.approx((0.675, 0.725))
    one = of(70.0)
    assert (one.sd, one.ci_low, one.ci_high) == (None, pytest.approx(0.692), pytest.approx(0.708))
    for sets, seeds in (([first, second[:1]], r"\[1, 2\]"), ([[]], r"\[0\]")):
        with pytest.raises(EvaluationError, match=f"{seeds} seeds"):
            estimate_over_seeds(sets)


@every(
    [
        (["REPRODUCED", "REPRODUCED"], "REPRODUCED"),
        (["REPRODUCED", "ABOVE", "BELOW"], "BELOW"),
        (["REPRODUCED", "INCONCLUSIVE"], "INCONCLUSIVE"),
        (["INCONCLUSIVE", "ABOVE"], "ABOVE"),
        (["REPRODUCED", "NOT COMPARABLE"], "NOT COMPARABLE"),
        ([], "NOT COMPARABLE"),
    ]
)
def test_overall_verdict_follows_the_order_of_precedence(verdicts, said):
    assert overall(verdicts) == said
