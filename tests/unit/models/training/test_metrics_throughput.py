"""Training throughput counts the time of the device, not the time to queue the work."""

from types import SimpleNamespace

import pytest

from bsl.models.training import loop, metrics
from tests.tiny_encoder import write_tiny
from tests.tiny_training import CONFIG, run

QUEUED_S, COMPUTED_S = 0.002, 0.020  # per step: on the host, and on the device
STEPS = 20


class Device:
    """A simulated device that computes steps one after another while the caller continues."""

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
        """Metrics that wait when read, as on a GPU."""

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
    return run(folder, config).throughput.pairs_per_s


@pytest.mark.parametrize("every", [10, 20])
def test_throughput_counts_device_time_not_queueing_time(device, tmp_path, every):
    """A reading of a GPU's metrics waits; it must not matter whether this is in a step or before an evaluation."""
    found = rate(write_tiny(tmp_path / "in", layers=1), every)
    # The device is idle only while its first step after a reading is queued: less than 1 % of the time.
    assert found == pytest.approx(CONFIG.batch_size / COMPUTED_S, rel=0.012)


def test_throughput_excludes_evaluation_time(device, tmp_path, monkeypatch):
    """The duration of evaluations and reports does not change the rate."""
    plain = rate(write_tiny(tmp_path / "in", layers=1), 10)
    evaluate = loop.DevEvaluator.evaluate

    def slow(*given, **options):
        device.now += 50.0
        return evaluate(*given, **options)

    monkeypatch.setattr(loop.DevEvaluator, "evaluate", slow)
    assert rate(tmp_path / "in", 10) == pytest.approx(plain, rel=1e-6)
