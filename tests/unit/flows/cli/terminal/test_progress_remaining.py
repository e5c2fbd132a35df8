"""The remaining time is estimated from rates measured in the run, and omitted where no rate is known."""

import pytest

from bsl.flows.cli.terminal.progress import Remaining, time_left
from bsl.models.runtime.progress import Count, Progress, spelled
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.tasks.stage.progress import StageRun

SECONDS_A_WORD = 12.0


def step(stage, number):
    return StageRun(stage, ArtifactRef(kind="views", key=f"{number:064x}"))


VIEWS, TRAIN, EMBED = step("make_views", 1), step("train", 2), step("embed", 3)


def simulated(rates, total):
    """Return the estimated and the true remaining seconds at each report of a stage of several equal counts."""
    clock, said = 60.0, []  # loading takes a minute
    ends = clock + sum(total / rate for rate in rates)
    for number, rate in enumerate(rates):
        count = Count("translation", following=len(rates) - number - 1)
        for done in range(0, total + 1, max(1, round(rate * SECONDS_A_WORD))):
            progress = count.update(done, total, "", clock + done / rate)
            said.append((progress.left, ends - clock - done / rate))
        clock += total / rate
    return said


def test_remaining_time_is_accurate_from_the_second_report():
    said = simulated([total / (20 * 3600) for total in (1_000_000, 1_000_000)], 1_000_000)
    assert said[0][0] is None
    spoken = [(left, true) for left, true in said if left is not None]
    assert len(spoken) >= len(said) - 2
    assert all(left == pytest.approx(true, rel=0.01) for left, true in spoken)
    assert spelled(spoken[0][0]) == "~40.0 h"


def test_rate_excludes_loading_time_and_resumed_progress():
    count = Count("training")
    assert count.update(5000, 10_000, "", 60.0).rate is None
    again = count.update(5100, 10_000, "", 70.0)
    assert (again.rate, again.left, again.pace) == (10.0, 490.0, "10/s")


def test_restarted_count_measures_a_new_rate_and_a_growing_one_has_no_time_left():
    count = Count("probing", following=None)
    count.update(0, 10, "", 0.0)
    assert count.update(10, 10, "", 1.0).rate == 10.0
    assert count.update(1, 10, "", 2.0).rate is None
    again = count.update(2, 10, "", 12.0)
    assert (again.rate, again.left, again.pace) == (0.1, None, "0.1/s")  # nobody knows how many counts follow
    growing = Count("ingest, KiB read")
    assert [growing.update(done, done, "", done / 10).left for done in (10, 20, 30)] == [None] * 3


def computing(remaining, stage, at):
    assert remaining.begins(stage)
    remaining.makes(stage, at)


def test_total_time_left_is_unknown_until_stages_are_measured():
    remaining = Remaining([VIEWS, TRAIN, EMBED])
    computing(remaining, VIEWS, 0.0)
    assert remaining.seconds(1000.0) is None
    remaining.advances(Progress("translation", 5, 10, left=40.0), 1000.0)
    assert remaining.seconds(1000.0) is None  # unknown: training may take minutes or days
    remaining.ends(VIEWS, 1040.0)
    computing(remaining, TRAIN, 1040.0)
    remaining.advances(Progress("training", 5, 10, left=40.0), 1050.0)
    assert time_left(remaining.seconds(1050.0)) == ""
    unplanned = Remaining(None)
    computing(unplanned, TRAIN, 0.0)
    unplanned.advances(Progress("training", 5, 10, left=50.0), 50.0)
    assert unplanned.seconds(50.0) is None


def test_second_sweep_point_is_estimated_from_the_first():
    trainings, embeds = [step("train", n) for n in range(3)], [step("embed", n) for n in range(3, 6)]
    remaining, clock = Remaining([*trainings, *embeds]), 0.0
    for point in range(2):
        for stage, seconds in ((trainings[point], 100.0), (embeds[point], 10.0)):
            computing(remaining, stage, clock)
            if point == 1 and stage in trainings:
                remaining.advances(Progress("training", 4, 10, left=60.0), clock + 40)
                assert remaining.seconds(clock + 40) == pytest.approx(60 + 100 + 2 * 10)
                assert remaining.seconds(clock + 50) == pytest.approx(50 + 100 + 2 * 10)
            clock += seconds
            remaining.ends(stage, clock)


@pytest.mark.parametrize(("seconds", "words"), [(2.0, "~5 s"), (61.0, "~60 s"), (400.0, "~7 min"), (9000.0, "~2.5 h")])
def test_time_left_is_rounded(seconds, words):
    assert time_left(seconds) == f"{words} left in total"
