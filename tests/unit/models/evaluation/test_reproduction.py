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


@pytest.mark.parametrize(
    ("values", "said", "needed"),
    [
        ((71.0,), "INCONCLUSIVE", 2),
        ((71.0, 71.6), "INCONCLUSIVE", 3),  # t 2.92 · 0.424 / √3 = 0.72 is less than 73.74 - 1 - 71.3 = 1.44
        ((71.0, 71.3, 71.6), "BELOW", None),
    ],
)
def test_low_score_is_inconclusive_then_below_with_more_seeds(values, said, needed):
    found = compare(of(*values), 73.74)
    assert (found.verdict, found.needed) == (said, needed)


@every(
    [
        (71.3, "REPRODUCED"),
        (71.79, "REPRODUCED"),
        (
            71.81,
            "INCONCLUSIVE",
        ),  # half-width 2.92 · 0.3 / √3 = 0.5058: it ends 0.9958 below, 1.0042 above a margin of 1
        (72.8, "INCONCLUSIVE"),
        (72.81, "BELOW"),
        (70.81, "REPRODUCED"),
        (70.79, "INCONCLUSIVE"),
        (69.79, "ABOVE"),
    ]
)
def test_verdict_requires_whole_interval_on_one_side_of_margin(published, said):
    figure = of(71.0, 71.3, 71.6)
    found = compare(figure, published)
    half = 2.919986 * 0.3 / 3**0.5
    assert found.interval == pytest.approx((71.3 - half, 71.3 + half), abs=1e-5)
    assert found.verdict == said
    assert (found.needed is not None) is (said == "INCONCLUSIVE")
    assert compare(figure, published, margin=10).verdict == "REPRODUCED"
    assert compare(figure, published, margin=0.1).verdict != "REPRODUCED"


def test_deterministic_score_is_decided_by_one_run():
    assert compare(of(71.0), 71.9, draws=False).verdict == "REPRODUCED"
    assert compare(of(71.0), 72.0, draws=False).verdict == "REPRODUCED"
    assert compare(of(71.0), 72.01, draws=False).verdict == "BELOW"
    assert compare(of(71.0, 71.0), 69.9).verdict == "ABOVE"  # no variance over seeds
    assert compare(of(71.0), 71.0).verdict == "INCONCLUSIVE"


@given(st.floats(0.01, 3), st.floats(0.01, 5))
def test_seeds_for_returns_the_smallest_sufficient_number(sd, room):
    needed = seeds_for(sd, room)
    if needed is None:
        assert half_width(sd, MOST, 0.9) >= room
    else:
        assert half_width(sd, needed, 0.9) < room
        assert needed == 2 or half_width(sd, needed - 1, 0.9) >= room


def share(said: str, off: float, seeds: int, trials: int = 2000) -> float:
    """Return the share of runs (sd 0.5, mean `off` points from 73.74) that get a verdict."""
    drawn = np.random.default_rng(seeds).normal(73.74 + off, 0.5, (trials, seeds))
    return sum(compare(of(*values), 73.74).verdict == said for values in drawn) / trials


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
@pytest.mark.parametrize("off", [-1.5, -1.0, 1.0])
def test_score_off_by_the_margin_is_rarely_reproduced(seeds, off):
    assert share("REPRODUCED", off, seeds) <= 0.05 + 2.5 * (0.05 * 0.95 / 2000) ** 0.5 * (abs(off) == 1.0)


def test_five_seeds_detect_reproduced_and_low_scores():
    assert share("REPRODUCED", 0.0, 5) > 0.9
    assert share("REPRODUCED", 0.0, 10) > 0.99
    assert share("BELOW", -2.0, 5) > 0.9
    assert share("BELOW", -1.0, 5) < 0.065
    assert share("BELOW", 0.0, 2) < 0.01


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
    with pytest.raises(EvaluationError, match=r"\[1, 2\] seeds"):
        estimate_over_seeds([first, second[:1]])


def test_one_seed_estimate_uses_the_interval_of_pairs():
    figure = of(70.0)
    assert figure.sd is None
    assert (figure.ci_low, figure.ci_high) == pytest.approx((0.692, 0.708))


def test_estimate_without_seeds_is_rejected():
    with pytest.raises(EvaluationError, match=r"\[0\] seeds"):
        estimate_over_seeds([[]])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.floats(-100, 100), st.floats(0.1, 5))
def test_verdict_matches_side_and_size_of_the_gap(values, published, margin):
    figure = estimate_over_seeds([[(value, value, value) for value in values]])
    found = compare(figure, published, margin)
    gap = 100 * figure.mean - published
    if found.verdict == "REPRODUCED":
        assert abs(gap) <= margin + 1e-6
    elif found.verdict != "INCONCLUSIVE":
        assert (found.verdict, abs(gap) > margin) == ("BELOW" if gap < 0 else "ABOVE", True)


def test_overall_verdict_follows_the_order_of_precedence():
    assert overall(["REPRODUCED", "REPRODUCED"]) == "REPRODUCED"
    assert overall(["REPRODUCED", "ABOVE", "BELOW"]) == "BELOW"
    assert overall(["REPRODUCED", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert overall(["INCONCLUSIVE", "ABOVE"]) == "ABOVE"
    assert overall(["REPRODUCED", "NOT COMPARABLE"]) == "NOT COMPARABLE"
    assert overall([]) == "NOT COMPARABLE"
