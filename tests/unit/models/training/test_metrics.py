"""Step metrics, read in batches on a GPU because each reading waits for the device."""

import math

import pytest
import torch

from bsl.models.training.metrics import READ_EVERY, DeferredMetrics, log_row


def _add(readings, rows, loss, norm=1.0):
    rows.append(log_row(len(rows) + 1, lr=0.1))
    readings.add(rows[-1], torch.tensor(loss), torch.tensor(norm))


def test_cpu_metrics_are_read_at_each_step():
    rows, readings = [], DeferredMetrics(torch.device("cpu"))
    _add(readings, rows, 2.0, 3.0)
    assert (rows[0]["loss"], rows[0]["grad_norm"]) == (2.0, 3.0)


def test_gpu_metrics_are_read_at_intervals_or_on_request():
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
    for _ in range(3):
        _add(readings, rows, 1.0)
    _add(readings, rows, loss, norm)
    _add(readings, rows, math.nan)
    with pytest.raises(FloatingPointError) as caught:
        readings.read()
    assert caught.value.args[:2] == (4, quantity)
