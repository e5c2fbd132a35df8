"""A budget in seconds is converted to steps by the median time of a few steps."""

import pytest

from tasks.training.step_timing import TIMED, WARM, _Clock, _TimedError, affordable


@pytest.mark.parametrize(
    ("seconds", "a_step", "steps"), [(40, 0.25, 160), (40, 0.31, 120), (120, 0.01, 12_000), (1, 3, 1), (9, 1, 9)]
)
def test_steps_are_those_that_fit_to_two_digits(seconds, a_step, steps):
    assert affordable(seconds, a_step) == steps
    assert steps * a_step <= max(seconds, a_step)


def test_the_clock_ends_a_training_after_what_it_counts():
    clock = _Clock()
    assert not any(clock() for _ in range(WARM + TIMED - 1))
    with pytest.raises(_TimedError):
        clock()
    assert len(clock.counted) == TIMED


def test_a_training_of_fewer_steps_is_timed_by_those():
    clock = _Clock()
    clock()
    assert len(clock.counted) == 1


def test_a_step_is_over_once_the_device_has_done_it(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr("tasks.training.step_timing.time.perf_counter", lambda: next(now))

    def wait():
        for _ in range(20):  # simulates the device's own time
            next(now)

    clock = _Clock(wait)
    clock()
    clock()
    assert clock.counted == [21, 21]
