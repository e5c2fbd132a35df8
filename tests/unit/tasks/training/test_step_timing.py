"""A budget in seconds is converted to steps by the median time of a few steps."""

import pytest

from tasks.training.step_timing import TIMED, WARM, _Clock, _TimedError, affordable


@pytest.mark.parametrize(
    ("seconds", "a_step", "steps"), [(40, 0.25, 160), (40, 0.31, 120), (120, 0.01, 12_000), (1, 3, 1), (9, 1, 9)]
)
def test_affordable_steps_fit_the_budget_to_two_digits(seconds, a_step, steps):
    assert affordable(seconds, a_step) == steps
    assert steps * a_step <= max(seconds, a_step)


def test_clock_stops_training_after_the_timed_steps():
    clock = _Clock()
    assert not any(clock() for _ in range(WARM + TIMED - 1))
    with pytest.raises(_TimedError):
        clock()
    assert len(clock.counted) == TIMED


def test_clock_counts_the_steps_of_a_shorter_training():
    clock = _Clock()
    clock()
    assert len(clock.counted) == 1


def test_step_time_includes_waiting_for_the_device(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr("tasks.training.step_timing.time.perf_counter", lambda: next(now))

    def wait():
        for _ in range(20):  # simulates the device's own time
            next(now)

    clock = _Clock(wait)
    clock()
    clock()
    assert clock.counted == [21, 21]
