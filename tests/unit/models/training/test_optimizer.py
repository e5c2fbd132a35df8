"""Optimizer and schedules equal restatements in float64, torch, hand-computed tables and transformers' schedule."""

import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from bsl.flows.recipes.paper import PAPER_TRAINING, RELEASED_TRAINING
from bsl.models.objectives.objective import Objective
from bsl.models.training.config import TrainingConfig
from bsl.models.training.optimizer import learning_rate, make_optimizer, set_step
from tests.every import every

RATES = [0.0, 0.02, 0.05, 0.05, 0.01, 0.03]  # a warm-up from 0, and later steps


class Weights(Objective):
    """A matrix with weight decay and a bias without."""

    def __init__(self):
        torch.manual_seed(2)
        super().__init__(torch.nn.Linear(3, 2, dtype=torch.float64), None)

    def forward(self, *_):
        return self.online.weight.pow(3).sum() + (2 * self.online.bias).exp().sum()


def trained(objective, config, rates, tensor_rate=False):
    optimizer = make_optimizer(objective, config)
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(0.3) if tensor_rate else group["lr"]
    for step, rate in enumerate(rates, 1):
        set_step(optimizer, rate, step, config)
        optimizer.zero_grad()
        objective().backward()
        optimizer.step()
    return objective.online


def restated(config, l2):
    """Restate transformers.AdamW with `correct_bias=False`: p − lr · m / (√v + ε), after the decay of p."""
    objective = Weights()
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
    found, expected = trained(Weights(), config, RATES), restated(config, l2=kind == "adam")
    torch.testing.assert_close(found.weight, expected.weight, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.bias, expected.bias, rtol=1e-12, atol=0)


def test_steps_with_bias_correction_equal_torch_adamw():
    config, plain = TrainingConfig(weight_decay=0.3, eps=1e-3), Weights()
    groups = [{"params": [plain.online.weight], "weight_decay": 0.3}, {"params": [plain.online.bias]}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0, eps=1e-3, fused=True)
    for rate in RATES:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        plain().backward()
        optimizer.step()
    assert torch.equal(trained(Weights(), config, RATES).weight, plain.online.weight)
    # Captured steps read the learning rate from its tensor.
    torch.testing.assert_close(trained(Weights(), config, RATES, tensor_rate=True).weight, plain.online.weight)


@every(
    [
        (20, 20, 0.1, "constant", 1.0),
        (1, 20, 0.0, "linear", 1.0),
        (11, 20, 0.0, "linear", 0.5),
        (2, 15, 0.1, "linear", 0.5),  # ⌈1.5⌉ = 2 warm-up steps
        (1, 1, 0.0, "linear", 1.0),
    ]
)
def test_learning_rate_equals_hand_computed_values(step, total, warmup, decay, expected):
    config = TrainingConfig(lr=1.0, warmup=warmup, decay=decay)
    assert learning_rate(step, total, config) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("config", [PAPER_TRAINING, RELEASED_TRAINING])
def test_preset_learning_rates_equal_the_transformers_linear_schedule(config):
    total = 137
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=config.lr)
    peer = get_linear_schedule_with_warmup(optimizer, 14, total)  # ⌈13.7⌉
    for step in range(1, total + 1):
        assert learning_rate(step, total, config) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        optimizer.step()
        peer.step()
