"""Verdicts on figures beside published ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import EvaluationError
from models.evaluation.reproduction import average, measured, overall, verdict


def one_seed(value: float, half: float):
    return measured([(value, value - half, value + half)])


@pytest.mark.parametrize(
    ("published", "said"),
    [
        (70.0, "REPRODUCED"),
        (72.9, "REPRODUCED"),  # in the interval
        (73.1, "BELOW"),
        (66.9, "ABOVE"),
    ],
)
def test_one_seed_has_the_interval_of_its_pairs(published, said):
    figure = one_seed(0.70, 0.03)
    assert figure.sd is None
    assert figure.interval == pytest.approx((67, 73))
    assert verdict(figure, published) == said


@pytest.mark.parametrize(("published", "said"), [(71.0, "REPRODUCED"), (71.01, "BELOW"), (68.99, "ABOVE")])
def test_a_point_is_tolerated_however_narrow_the_interval(published, said):
    assert verdict(one_seed(0.70, 0.001), published) == said


def test_the_difference_is_that_of_printed_figures():
    assert verdict(one_seed(0.700049, 0.001), 71.0) == "REPRODUCED"  # 70.00 beside 71.00


def test_seeds_and_pairs_add_as_squares():
    figure = measured([(0.70, 0.68, 0.71), (0.72, 0.70, 0.73), (0.77, 0.75, 0.78)])
    assert figure.mean == pytest.approx(73)
    assert figure.sd == pytest.approx(np.std([70, 72, 77], ddof=1))
    margin = 4.3027 * figure.sd / 3**0.5  # Student's t with 2 degrees of freedom
    assert figure.interval == pytest.approx((73 - np.hypot(margin, 2), 73 + np.hypot(margin, 1)), abs=1e-3)


def test_an_average_is_over_sets_in_each_seed():
    first = measured([(0.6, 0.57, 0.64), (0.7, 0.67, 0.74)])
    second = measured([(0.8, 0.76, 0.83), (0.7, 0.66, 0.73)])
    mean = average([first, second])
    assert mean.values == pytest.approx((70, 70))
    assert mean.sd == pytest.approx(0)  # what one set gains the other loses
    assert (mean.below, mean.above) == pytest.approx((2.5, 2.5))
    with pytest.raises(EvaluationError, match=r"\[1, 2\] seeds"):
        average([first, one_seed(0.7, 0.1)])


def test_no_seed_is_refused():
    with pytest.raises(EvaluationError, match="0 seeds"):
        measured([])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.floats(0, 0.1), st.floats(-100, 100))
def test_what_lies_in_the_interval_is_reproduced_and_else_the_side_is_right(values, half, published):
    figure = measured([(value, value - half, value + half) for value in values])
    low, high = figure.interval
    said = verdict(figure, published)
    if low <= published <= high:
        assert said == "REPRODUCED"
    elif said != "REPRODUCED":
        assert said == ("BELOW" if figure.mean < published else "ABOVE")


def test_one_verdict_of_several():
    assert overall(["REPRODUCED", "REPRODUCED"]) == "REPRODUCED"
    assert overall(["REPRODUCED", "ABOVE", "BELOW"]) == "BELOW"
    assert overall(["REPRODUCED", "NOT COMPARABLE"]) == "NOT COMPARABLE"
    assert overall([]) == "NOT COMPARABLE"
