"""Learning rate and momentum of each step, by hand-computed tables and against transformers' schedule."""

import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from models.bsl.config import BSLConfig
from models.bsl.ema import momentum_at
from models.training.config import TrainingConfig, paper_config, released_config
from models.training.schedule import learning_rate


@pytest.mark.parametrize(
    ("step", "total", "warmup", "decay", "expected"),
    [
        (1, 20, 0.1, "linear", 0.0),
        (2, 20, 0.1, "linear", 0.5),
        (3, 20, 0.1, "linear", 1.0),
        (12, 20, 0.1, "linear", 0.5),
        (20, 20, 0.1, "linear", 1 / 18),
        (20, 20, 0.1, "constant", 1.0),
        (1, 20, 0.0, "linear", 1.0),
        (11, 20, 0.0, "linear", 0.5),
        (1, 15, 0.1, "linear", 0.0),  # ⌈1.5⌉ = 2 warm-up steps
        (2, 15, 0.1, "linear", 0.5),
        (1, 1, 0.0, "linear", 1.0),
    ],
)
def test_learning_rate_table(step, total, warmup, decay, expected):
    config = TrainingConfig(lr=1.0, warmup=warmup, decay=decay)
    assert learning_rate(step, total, config) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("config", [paper_config(), released_config()])
def test_presets_follow_the_schedule_of_the_released_code(config):
    total = 137
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=config.lr)
    peer = get_linear_schedule_with_warmup(optimizer, 14, total)  # ⌈13.7⌉
    for step in range(1, total + 1):
        assert learning_rate(step, total, config) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        optimizer.step()
        peer.step()


def test_presets_are_the_published_values():
    paper, released = paper_config(), released_config()
    assert (paper.optimizer, paper.lr, paper.batch_size, paper.epochs, paper.eps) == ("adam", 5e-4, 64, 1, 1e-6)
    assert (paper.bsl.predictor, paper.bsl.k, paper.bsl.momentum, paper.bsl.norm) == ("paper", 8, 0.999, "batch")
    assert (released.optimizer, released.lr, released.weight_decay, released.clip) == ("adamw", 1e-4, 0.0, 1.0)
    assert (released.bsl.predictor, released.bsl.k, released.bsl.target_dropout) == ("released", 10, True)
    assert paper.bsl.target_norm == released.bsl.target_norm == "none"


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [("constant", 1, 0.99), ("constant", 100, 0.99), ("cosine", 50, 0.995), ("cosine", 100, 1.0)],
)
def test_momentum_table(schedule, step, expected):
    assert momentum_at(step, 100, BSLConfig(momentum=0.99, momentum_schedule=schedule)) == pytest.approx(expected)
