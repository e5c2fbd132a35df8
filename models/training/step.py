"""One optimizer step: loss → gradients → clip → optimizer → target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from models.encoder.arithmetic import arithmetic
from models.objectives.ema import momentum_at
from models.training.processes import agree_on_gradients
from models.training.schedule import learning_rate

if TYPE_CHECKING:
    from models.objectives.base import Objective
    from models.training.batches import TokenPairs
    from models.training.config import TrainingConfig
    from models.training.state import LiveRun

# Padded tokens a forward pass of an encoder that cannot run packed. Part of the result's last bits, hence no settings.
CPU_TOKENS, GPU_TOKENS = 512, 1 << 20


def make_optimizer(objective: Objective, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam or AdamW, fused; weight decay on matrices only.

    The released code leaves out biases and LayerNorm by name, which would decay the predictor's BatchNorm weights; its
    decay is 0, so nothing follows from that.
    """
    learning = objective.learning_parameters()
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=config.lr, eps=config.eps, fused=True)


def take_step(run: LiveRun, batch: TokenPairs, config: TrainingConfig) -> dict[str, float | None]:
    """Train on one batch; the figures of the step for the log.

    Raises:
        FloatingPointError: Loss or gradient norm is not finite; its arguments are the quantity's name and value.
            Weights and target are as before the step.
    """
    objective, step = run.objective, run.step + 1
    rate, momentum = learning_rate(step, run.total, config), momentum_at(step, run.total, config.objective)
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    device = objective.online.device
    with arithmetic(device, bf16=config.precision == "bf16"):
        loss = objective(batch.tokens, batch.view_1, batch.view_2, CPU_TOKENS if device.type == "cpu" else GPU_TOKENS)
    value = _finite(loss, "loss")
    run.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    agree_on_gradients(objective)
    grad_norm = _clip(objective.learning_parameters(), config.clip)
    run.optimizer.step()
    if momentum is not None:
        objective.update_target(momentum)
    run.step = step
    return {"loss": value, "lr": rate, "momentum": momentum, "grad_norm": grad_norm}


def _clip(parameters: list[torch.nn.Parameter], bound: float) -> float:
    """The norm of all gradients together, which are scaled down where it exceeds the bound."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    value = _finite(norm, "gradient norm")
    if value > bound:  # below it torch's own function would multiply every gradient by one
        torch.nn.utils.clip_grads_with_norm_(parameters, bound, norm)
    return value


def _finite(value: torch.Tensor, quantity: str) -> float:
    number = float(value.detach())
    if not math.isfinite(number):
        raise FloatingPointError(quantity, number)
    return number
