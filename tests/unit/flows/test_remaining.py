"""What is left of a run is reckoned from its plan and from what was measured, and said as an estimate."""

import pytest

from flows.cli.remaining import WEIGHTS, Remaining, told
from storage.refs import ArtifactRef
from tasks.stage.watch import Step


def step(stage, number):
    return Step(stage, ArtifactRef(kind="views", key=f"{number:064x}"))


VIEWS, TRAIN, EMBED = step("make_views", 1), step("train", 2), step("embed", 3)


def test_nothing_is_said_before_anything_was_measured():
    remaining = Remaining([VIEWS, TRAIN])
    assert remaining.seconds(0.0) is None
    remaining.makes(VIEWS, 0.0)
    assert remaining.seconds(1.0) is None
    assert told(remaining.seconds(1.0)) == ""


def test_a_machine_twice_as_slow_takes_twice_as_long():
    remaining = Remaining([VIEWS, TRAIN, EMBED])
    remaining.makes(VIEWS, 0.0)
    remaining.ends(VIEWS, 2 * WEIGHTS["make_views"])
    remaining.makes(TRAIN, 100.0)
    assert remaining.seconds(100.0) == pytest.approx(2 * (WEIGHTS["train"] + WEIGHTS["embed"]))


def test_the_rate_of_a_training_under_way_outweighs_its_weight():
    remaining = Remaining([TRAIN, EMBED])
    remaining.makes(TRAIN, 0.0)
    remaining.advances(10, 100, 40.0)
    assert remaining.seconds(40.0) == pytest.approx(WEIGHTS["train"] - 40 + WEIGHTS["embed"])
    remaining.advances(50, 100, 200.0)
    pace = (200.0 + 200.0) / WEIGHTS["train"]
    assert remaining.seconds(200.0) == pytest.approx(200.0 + pace * WEIGHTS["embed"])


def test_what_was_found_made_weighs_nothing():
    remaining = Remaining([VIEWS, TRAIN])
    remaining.ends(VIEWS, 0.1)
    remaining.makes(TRAIN, 0.1)
    remaining.advances(0, 10, 0.1)
    remaining.advances(1, 10, 10.1)
    assert remaining.seconds(10.1) == pytest.approx(90.0)


def test_a_stage_that_is_late_makes_the_rest_late():
    remaining = Remaining([VIEWS, TRAIN])
    remaining.makes(VIEWS, 0.0)
    early, late = remaining.seconds(10.0), remaining.seconds(10 * WEIGHTS["make_views"])
    assert early == pytest.approx(WEIGHTS["make_views"] - 10 + WEIGHTS["train"])
    assert late == pytest.approx(WEIGHTS["make_views"] + 10 * WEIGHTS["train"])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2.0, "~5 s left in all"),
        (61.0, "~60 s left in all"),
        (400.0, "~7 min left in all"),
        (9000.0, "~2.5 h left in all"),
    ],
)
def test_an_estimate_is_said_in_round_numbers(seconds, words):
    assert told(seconds) == words
