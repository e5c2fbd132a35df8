"""Step metrics, read in batches on a GPU because each reading waits for it; peaks; throughput by the device's time."""

import math
from types import SimpleNamespace

import pytest
import torch

from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training import loop, metrics
from bsl.models.training.metrics import READ_EVERY, DeferredMetrics, Throughput, log_row, peak_flops
from tests.every import every
from tests.tiny_encoder import tiny_encoder, write_tiny
from tests.tiny_training import CONFIG, run


def _add(readings, rows, loss, norm=1.0):
    rows.append(log_row(len(rows) + 1, lr=0.1))
    readings.add(rows[-1], torch.tensor(loss), torch.tensor(norm))


def test_metrics_are_read_at_each_step_on_a_cpu_and_at_intervals_or_on_request_on_a_gpu():
    rows, readings = [], DeferredMetrics(torch.device("cpu"))
    _add(readings, rows, 2.0, 3.0)
    assert (rows[0]["loss"], rows[0]["grad_norm"]) == (2.0, 3.0)
    rows, readings = [], DeferredMetrics(torch.device("cuda"))
    for step in range(READ_EVERY - 1):
        _add(readings, rows, float(step))
    assert {row["loss"] for row in rows} == {None}
    _add(readings, rows, 99.0)
    assert [row["loss"] for row in rows] == [*map(float, range(READ_EVERY - 1)), 99.0]
    _add(readings, rows, 5.0)
    readings.read()
    readings.read()
    assert rows[-1]["loss"] == 5.0


@pytest.mark.parametrize(("loss", "norm", "quantity"), [(math.nan, 1.0, "loss"), (1.0, math.inf, "gradient norm")])
def test_non_finite_metric_error_names_first_step_and_metric(loss, norm, quantity):
    rows, readings = [], DeferredMetrics(torch.device("cuda"))
    for values in [(1.0,), (1.0,), (1.0,), (loss, norm), (math.nan,)]:
        _add(readings, rows, *values)
    with pytest.raises(FloatingPointError) as caught:
        readings.read()
    assert caught.value.args[:2] == (4, quantity)


@every(
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA H200 NVL", 835e12),
        ("NVIDIA A10G", None),
        ("NVIDIA T400", None),
    ]
)
def test_peak_flops_match_the_exact_gpu_name(name, peak):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "get_device_name", lambda _: name)
        assert peak_flops(torch.device("cuda")) == peak
    assert peak_flops(torch.device("cpu")) is None


def test_flop_count_three_passes_of_online_encoder_and_heads_and_one_of_the_target(tmp_path):
    objective = BSLConfig().build(tiny_encoder(tmp_path)[0])
    modules = [objective.online.backbone.encoder, objective.target.backbone.encoder, objective.predictor]
    online, target, heads = (sum(p.numel() for p in module.parameters() if p.ndim == 2) for module in modules)
    assert min(online, heads) > 0
    tokens, pairs = 70, 5  # of both views; a pair has two vectors
    expected = 2 * (3 * online + target) * tokens + 2 * 3 * heads * 2 * pairs
    assert Throughput(objective).flops(tokens, pairs) == expected


QUEUED_S, COMPUTED_S = 0.002, 0.020  # per step: on the host, and on the device


class Device:
    """A simulated device that computes steps one after another while the caller continues."""

    def __init__(self):
        self.now = self.free = 0.0

    def queue(self):
        self.now += QUEUED_S
        self.free = max(self.now, self.free) + COMPUTED_S

    def wait(self, *_):
        self.now = max(self.now, self.free)


def test_throughput_counts_the_time_of_steps_on_the_device_without_evaluations(tmp_path, monkeypatch):
    """A reading of a GPU's metrics waits; it must not matter whether this is in a step or before an evaluation."""
    device, take_step, evaluate = Device(), loop.take_step, loop.DevEvaluator.evaluate

    def queued(*given):
        device.queue()
        return take_step(*given)

    def slow(*given, **options):
        device.now += 50.0
        return evaluate(*given, **options)

    class Unread(DeferredMetrics):
        """Metrics that wait when read, as on a GPU."""

        def __init__(self, _):
            super().__init__(SimpleNamespace(type="cuda"))

        def read(self):
            device.wait()
            super().read()

    monkeypatch.setattr(loop, "take_step", queued)
    monkeypatch.setattr(loop, "DeferredMetrics", Unread)
    monkeypatch.setattr(loop.DevEvaluator, "evaluate", slow)
    monkeypatch.setattr(metrics, "wait", device.wait)
    monkeypatch.setattr(metrics, "time", SimpleNamespace(perf_counter=lambda: device.now))
    folder = write_tiny(tmp_path, layers=1)
    for every_steps in (10, 20):
        config = CONFIG.model_copy(update={"eval_every": every_steps, "max_steps": 20, "epochs": 1000})
        # The device is idle only while its first step after a reading is queued: less than 1 % of the time.
        found = run(folder, config).throughput.pairs_per_s
        assert found == pytest.approx(CONFIG.batch_size / COMPUTED_S, rel=0.012)
