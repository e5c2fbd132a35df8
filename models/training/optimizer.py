"""One optimizer step (loss → gradients → clip → optimizer → target), and the optimizers, schedule and state for it.

Released code of 2019 to 2021 uses BertAdam: no bias correction, and ε outside the corrected root. `set_step` computes
these steps with torch's fused kernel.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import torch

from bsl.models.runtime.device import arithmetic
from bsl.models.training.distributed import all_reduce_gradients
from bsl.models.training.metrics import check_finite, log_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bsl.models.objectives.objective import Batch, Objective
    from bsl.models.training.config import TrainingConfig
    from bsl.models.training.snapshots import TrainingState

Figures: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"  # loss and gradient norm, scalars on the device
Compute: TypeAlias = "Callable[[TrainingState, Batch, TrainingConfig, float | None], Figures]"


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


def compute(run: TrainingState, batch: Batch, config: TrainingConfig, momentum: float | None) -> Figures:
    """Compute the device part of a step, for a given momentum and the learning rate set in the optimizer.

    Raises:
        FloatingPointError: As in `take_step`.
    """
    objective, step = run.objective, run.step + 1
    device = objective.online.device
    on_cpu = device.type == "cpu"
    with arithmetic(device, bf16=config.precision == "bf16"):
        loss = objective(batch)
    agree = partial(all_reduce_gradients, objective, run.learning)
    grad_norm = descend(loss, run.learning, [run.optimizer], config.clip, step if on_cpu else None, agree)
    if momentum is not None:
        objective.update_target(momentum)
    return loss.detach(), grad_norm


def descend(
    loss: torch.Tensor,
    parameters: Sequence[torch.nn.Parameter],
    optimizers: Sequence[torch.optim.Optimizer],
    clip: float,
    checked_step: int | None,
    agree: Callable[[], None] | None = None,
) -> torch.Tensor:
    """Take an optimizer step along the gradients of a loss.

    Args:
        loss: A scalar.
        parameters: Parameters that the optimizers change.
        optimizers: Optimizers of the parameters.
        clip: Bound on the norm of all gradients together.
        checked_step: Number of the step, for errors; None does not check loss and norm, which would wait for a GPU.
        agree: Makes the gradients of several processes equal.

    Returns:
        The norm of the gradients before clipping, a scalar on their device.

    Raises:
        FloatingPointError: Loss or norm is not finite; the arguments are step, quantity and value. No weight has
            changed.
    """
    if checked_step is not None:
        check_finite(checked_step, loss, "loss")
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    if agree is not None:
        agree()
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    # Below the bound torch multiplies every gradient by one, which a GPU does faster than waiting for the norm.
    if norm.device.type != "cpu" or norm > clip:
        torch.nn.utils.clip_grads_with_norm_(parameters, clip, norm)
    if checked_step is not None:
        check_finite(checked_step, norm, "gradient norm")
    for optimizer in optimizers:
        optimizer.step()
    return norm


def take_step(run: TrainingState, batch: Batch, config: TrainingConfig, computed_by: Compute = compute) -> Figures:
    """Train on one batch; append the step's row to the log, without loss and gradient norm, and return these.

    On a CPU, loss and gradient norm are checked before the weights change. On a GPU they are checked later, when
    `DeferredMetrics` reads them, so that the step does not wait.

    Args:
        run: State of the run; the step changes it.
        batch: The step's batch.
        config: Settings of the run.
        computed_by: Function for the part of the step on the device.

    Raises:
        FloatingPointError: On a CPU, loss or gradient norm is not finite; its arguments are the step, the quantity's
            name and its value. Weights and target are as before the step.
    """
    step = run.step + 1
    rate, momentum = learning_rate(step, run.total, config), run.objective.momentum(step, run.total)
    set_step(run.optimizer, rate, step, config)
    loss, grad_norm = computed_by(run, batch, config, momentum)
    run.step = step
    run.log.append(log_row(step, lr=rate, momentum=momentum))
    return loss, grad_norm
