"""Adam without bias correction equals the optimizer of IS-BERT's code, restated in float64."""

import math

import pytest
import torch

from bsl.models.objectives.objective import Objective
from bsl.models.training.config import TrainingConfig
from bsl.models.training.optimizer import make_optimizer, set_step

RATES = [0.0, 0.02, 0.05, 0.05, 0.01, 0.03]  # a warm-up from 0, and later steps


class Weights(Objective):
    """A matrix with weight decay and a bias without."""

    def __init__(self):
        super().__init__(torch.nn.Linear(3, 2, dtype=torch.float64), None)

    def forward(self, *_):
        return self.online.weight.pow(3).sum() + (2 * self.online.bias).exp().sum()


def seeded():
    torch.manual_seed(2)
    return Weights()


def ours(config):
    objective = seeded()
    optimizer = make_optimizer(objective, config)
    for step, rate in enumerate(RATES, 1):
        set_step(optimizer, rate, step, config)
        optimizer.zero_grad()
        objective().backward()
        optimizer.step()
    return objective.online


def restated(config, l2):
    """Restate transformers.AdamW with `correct_bias=False`: p − lr · m / (√v + ε), after the decay of p."""
    objective = seeded()
    params = list(objective.parameters())
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in params]
    for rate in RATES:
        slopes = torch.autograd.grad(objective(), params)
        for p, g, (m, v) in zip(params, slopes, moments, strict=True):
            decay = config.weight_decay if p.ndim == 2 else 0.0
            with torch.no_grad():
                g = g + decay * p if l2 else g
                p.mul_(1.0 if l2 else 1 - rate * decay)
                m.mul_(0.9).add_(0.1 * g)
                v.mul_(0.999).add_(0.001 * g * g)
                p.sub_(rate * m / (v.sqrt() + config.eps))
    return objective.online


@pytest.mark.parametrize("kind", ["adamw", "adam"])
def test_steps_without_bias_correction_equal_the_restated_optimizer(kind):
    config = TrainingConfig(optimizer=kind, weight_decay=0.3, eps=1e-3, bias_correction=False)
    found, expected = ours(config), restated(config, l2=kind == "adam")
    torch.testing.assert_close(found.weight, expected.weight, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.bias, expected.bias, rtol=1e-12, atol=0)


def test_steps_with_bias_correction_equal_torch_adamw():
    config = TrainingConfig(weight_decay=0.3, eps=1e-3)
    plain = seeded()
    optimizer = torch.optim.AdamW(
        [{"params": [plain.online.weight], "weight_decay": 0.3}, {"params": [plain.online.bias], "weight_decay": 0.0}],
        eps=1e-3,
        fused=True,
    )
    for rate in RATES:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        plain().backward()
        optimizer.step()
    assert torch.equal(ours(config).weight, plain.online.weight)
    assert not torch.equal(ours(config.model_copy(update={"bias_correction": False})).weight, plain.online.weight)


class Slope(Weights):
    """Weights under a loss with a constant gradient."""

    def forward(self, *_):
        return self.online.weight.sum() + self.online.bias.sum()


@pytest.mark.parametrize(("step", "larger"), [(1, math.sqrt(10)), (12, 6.57), (500, 1.59)])
def test_first_steps_are_larger_without_bias_correction(step, larger):
    config = TrainingConfig(weight_decay=0.0, eps=1e-12, bias_correction=False)
    objective = Slope()
    optimizer = make_optimizer(objective, config)
    for number in range(1, step + 1):
        before = objective.online.bias.detach().clone()
        set_step(optimizer, 1.0, number, config)
        optimizer.zero_grad()
        objective().backward()
        optimizer.step()
    # With correction, each step of a constant gradient equals the learning rate.
    assert (before - objective.online.bias).abs().max().item() == pytest.approx(larger, rel=0.01)
