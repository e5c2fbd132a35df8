"""The pre-training loop stops at a loss or gradient that is not finite."""

import math

import numpy as np
import pytest
import torch

from assets.training import loop
from assets.training.config import LearningConfig
from assets.training.loop import pretrain
from bsl.models.errors import TrainingError
from bsl.models.training.snapshots import read_snapshot

CONFIG = LearningConfig(steps=5, optimizer="adamw", warmup_steps=0, precision="fp32")


class Broken:
    """Five batches, the third with its loss multiplied by a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def plan(self, epoch):
        return [np.array([number]) for number in range(5)]

    def loss(self, model, batch, generator):
        factor = self.factor if batch[0] == 2 else 1.0
        return (model(torch.ones(2, 2)) ** 2).mean() * factor, 4


def told(*_):
    pass


@pytest.mark.parametrize(("factor", "quantity"), [(math.nan, "loss is nan"), (1e30, "gradient norm is inf")])
def test_non_finite_loss_or_gradient_stops_before_the_snapshot(tmp_path, monkeypatch, factor, quantity):
    monkeypatch.setattr(loop, "SAVE_MINUTES", 0.0)  # after every step
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    with pytest.raises(TrainingError, match=f"{quantity} at step 3 of pre-training, expected a finite number"):
        pretrain(model, Broken(factor), CONFIG, told, tmp_path)
    newest = read_snapshot(max(tmp_path.iterdir()))
    assert newest.step == 2
    for group in newest.tensors.values():
        assert all(torch.isfinite(tensor).all() for tensor in group.values())
    for name, weight in model.named_parameters():
        torch.testing.assert_close(newest.tensors["model"][name], weight.detach(), rtol=0, atol=0)
