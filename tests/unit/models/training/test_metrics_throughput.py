"""A training's rate counts the time of the device that computes, not that of queueing the work."""

from types import SimpleNamespace

import pytest

from models.training import loop, metrics
from tests.tiny_encoder import write_tiny
from tests.tiny_training import CONFIG, run

QUEUED_S, COMPUTED_S = 0.002, 0.020  # of a step: on this side, and on the device
STEPS = 80


class Device:
    """A device that computes one step after another while the caller goes on, in a time of its own."""

    def __init__(self):
        self.now = self.free = 0.0

    def queue(self):
        self.now += QUEUED_S
        self.free = max(self.now, self.free) + COMPUTED_S

    def wait(self, *_):
        self.now = max(self.now, self.free)


@pytest.fixture
def device(monkeypatch):
    made, take_step = Device(), loop.take_step

    def queued(*given):
        made.queue()
        return take_step(*given)

    class Unread(metrics.DeferredMetrics):
        """Reads figures as it does of a GPU, where reading waits."""

        def __init__(self, _):
            super().__init__(SimpleNamespace(type="cuda"))

        def read(self):
            made.wait()
            super().read()

    monkeypatch.setattr(loop, "take_step", queued)
    monkeypatch.setattr(loop, "DeferredMetrics", Unread)
    monkeypatch.setattr(metrics, "wait", made.wait)
    monkeypatch.setattr(metrics, "time", SimpleNamespace(perf_counter=lambda: made.now))
    return made


def rate(folder, every):
    config = CONFIG.model_copy(update={"eval_every": every, "max_steps": STEPS, "epochs": 1000})
    return run(folder, config).pairs_per_s


@pytest.mark.parametrize("every", [10, 80])
def test_a_lag_of_the_device_is_part_of_every_step(device, tmp_path, every):
    """Reading a GPU's figures waits; whether that happens within a step or before an evaluation must not matter."""
    found = rate(write_tiny(tmp_path / "in", "bert"), every)
    # The device is idle only while its first step after a reading is queued: less than one part in a hundred.
    assert found == pytest.approx(CONFIG.batch_size / COMPUTED_S, rel=0.012)


def test_what_is_no_step_stops_the_clock(device, tmp_path, monkeypatch):
    """Evaluations and reports take as long as they like."""
    plain = rate(write_tiny(tmp_path / "in", "bert"), 10)
    evaluate = loop.DevEvaluator.evaluate

    def slow(*given, **options):
        device.now += 50.0
        return evaluate(*given, **options)

    monkeypatch.setattr(loop.DevEvaluator, "evaluate", slow)
    assert rate(tmp_path / "in", 10) == pytest.approx(plain, rel=1e-6)
