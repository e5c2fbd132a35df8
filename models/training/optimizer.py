"""Optimizers of training and pre-training: build them, set the learning rate, clip gradients, save their state.

Released code of 2019 to 2021 uses BertAdam: no bias correction, and ε outside the corrected root. `set_step` computes
these steps with torch's fused kernel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.objectives.objective import Objective
    from models.training.config import TrainingConfig

Tensors = dict[str, torch.Tensor]


def make_optimizer(objective: Objective, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return Adam or AdamW, fused; weight decay on matrices only.

    The released code excludes biases and LayerNorm by name, which would decay the predictor's BatchNorm weights. Its
    decay is 0, so this makes no difference.
    """
    learning = objective.learning_parameters()
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=config.lr, eps=config.eps, fused=True)


def learning_rate(step: int, total: int, config: TrainingConfig) -> float:
    """Return the learning rate of optimizer step `step` (1-based) of `total`: warm-up, then decay or none.

    As in the released code, warm-up takes ⌈warmup · total⌉ steps, and the first step has rate 0. Decay would reach 0
    one step after the last.
    """
    done = step - 1
    rising = math.ceil(config.warmup * total)
    if done < rising:
        return config.lr * done / rising
    if config.decay == "constant":
        return config.lr
    return config.lr * (total - done) / max(1, total - rising)


def set_step(optimizer: torch.optim.Optimizer, rate: float, step: int, config: TrainingConfig) -> None:
    """Set the learning rate of optimizer step `step` (1-based), with or without Adam's bias correction.

    A rate that is a tensor, which captured steps read, changes in place; such a run has bias correction.

    torch always corrects: its step is rate / c₁ · m / (√v / √c₂ + ε), where cᵢ = 1 − βᵢ^step. With the rate times
    c₁ / √c₂ and ε / √c₂, that equals rate · m / (√v + ε), the step without correction. torch multiplies decoupled decay
    by the rate, so the decay is scaled to stay the same.
    """
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
            continue
        group["lr"] = rate
        if not config.bias_correction:
            first, second = (1 - beta**step for beta in group["betas"])
            group["lr"], group["eps"] = rate * first / math.sqrt(second), config.eps / math.sqrt(second)
            if config.optimizer == "adamw" and group["weight_decay"] > 0:
                group["weight_decay"] = config.weight_decay * math.sqrt(second) / first


def clip_gradients(parameters: Sequence[torch.nn.Parameter], bound: float) -> torch.Tensor:
    """Scale gradients down to a norm of at most `bound`; return their norm before, a scalar on their device."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    # Below the bound torch multiplies every gradient by one, which a GPU does faster than waiting for the norm.
    if norm.device.type != "cpu" or norm > bound:
        torch.nn.utils.clip_grads_with_norm_(parameters, bound, norm)
    return norm


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> Tensors:
    """Return the state of all optimizers: `<optimizer>.<parameter>.<quantity>` → tensor."""
    return {
        f"{number}.{parameter}.{quantity}": torch.as_tensor(value)
        for number, optimizer in enumerate(optimizers)
        for parameter, state in optimizer.state_dict()["state"].items()
        for quantity, value in state.items()
    }


def restore_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: Tensors) -> None:
    """Restore the state that `optimizer_tensors` returned; groups and rates stay as configured."""
    states: list[dict[int, dict[str, Any]]] = [{} for _ in optimizers]
    for key, tensor in tensors.items():
        number, parameter, quantity = key.split(".", 2)
        states[int(number)].setdefault(int(parameter), {})[quantity] = tensor.clone()
    for optimizer, state in zip(optimizers, states, strict=True):
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
