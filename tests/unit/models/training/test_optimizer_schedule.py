"""Learning rate and momentum schedules equal hand-computed tables and transformers' schedule."""

import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from bsl.flows.recipes.paper import PAPER_TRAINING, RELEASED_TRAINING
from bsl.models.objectives.bsl import momentum_at
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.objective import Objective
from bsl.models.training.config import CollapseConfig, TrainingConfig
from bsl.models.training.optimizer import learning_rate, make_optimizer
from tests.every import every


@every(
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


SHARED = {
    "eps": 1e-6,  # Table 8; the released code has it too
    "bias_correction": True,
    "order": "random",
    "batch_size": 64,
    "drop_last": True,
    "epochs": 1,
    "max_steps": None,
    "warmup": 0.1,
    "decay": "linear",
    "clip": 1.0,
    "seed": 0,
    "precision": "fp32",
    "length_buckets": None,
    "select": "best",
    "collapse": CollapseConfig().model_dump(),
}
SHARED_OBJECTIVE = {
    "name": "bsl",
    "norm": "batch",
    "momentum": 0.999,
    "momentum_schedule": "constant",
    "target_norm": "none",
    "target_norm_momentum": 0.9,
    "dims": (),
    "contrastive_weight": 0.0,
    "temperature": 0.05,
}
EVERY_TENTH = {"eval_every": None, "dev_similarity": "cosine"}
FLOOR_OF_TENTH = {"eval_every": "tenth", "dev_similarity": "best-of-four"}
PAPER = {"predictor": "paper", "k": 8, "target_dropout": False, "loss_scale": "paper"}
RELEASED = {"predictor": "released", "k": 10, "target_dropout": True, "loss_scale": "released"}


@pytest.mark.parametrize(
    ("config", "optimiser", "objective"),
    [
        (PAPER_TRAINING, {"optimizer": "adamw", "lr": 5e-4, "weight_decay": 0.01} | EVERY_TENTH, PAPER),
        (RELEASED_TRAINING, {"optimizer": "adamw", "lr": 1e-4, "weight_decay": 0.0} | FLOOR_OF_TENTH, RELEASED),
    ],
)
def test_presets_equal_the_published_settings(config, optimiser, objective):
    assert config.model_dump() == SHARED | optimiser | {"objective": SHARED_OBJECTIVE | objective}


class Rows(Objective):
    """An embedding of two rows at BERT's scale; the loss uses only the first."""

    def __init__(self):
        super().__init__(torch.nn.Embedding.from_pretrained(0.03 * torch.randn(2, 16), freeze=False), None)

    def forward(self, *_):
        return self.online.weight[0].square().sum()


def share_left(config):
    """Return the share of the unused row's norm that remains after 500 steps."""
    torch.manual_seed(0)
    objective = Rows()
    optimizer, before = make_optimizer(objective, config), objective.online.weight[1].norm().item()
    for step in range(1, 501):
        optimizer.param_groups[0]["lr"] = learning_rate(step, 500, config)
        optimizer.zero_grad()
        objective().backward()
        optimizer.step()
    return objective.online.weight[1].norm().item() / before


def test_paper_preset_does_not_shrink_unused_word_embeddings():
    assert share_left(PAPER_TRAINING) == pytest.approx(1, abs=0.01)


def test_adam_weight_decay_shrinks_unused_word_embeddings():
    assert share_left(TrainingConfig(optimizer="adam")) < 0.1


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [("constant", 1, 0.99), ("constant", 100, 0.99), ("cosine", 50, 0.995), ("cosine", 100, 1.0)],
)
def test_target_momentum_equals_hand_computed_values(schedule, step, expected):
    assert momentum_at(step, 100, BSLConfig(momentum=0.99, momentum_schedule=schedule)) == pytest.approx(expected)


def test_objective_without_a_target_has_no_momentum():
    assert Rows().momentum(5, 100) is None
