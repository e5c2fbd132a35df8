"""One optimizer step: loss → gradients → clip → optimizer → target; pre-training uses `descend` too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from models.runtime.device import arithmetic
from models.training.distributed import agree_on_gradients
from models.training.metrics import check_finite, log_row
from models.training.optimizer import clip_gradients, learning_rate, set_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from models.objectives.objective import Batch
    from models.training.config import TrainingConfig
    from models.training.state import TrainingState

Figures: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"  # loss and gradient norm, scalars on the device
Compute: TypeAlias = "Callable[[TrainingState, Batch, TrainingConfig, float | None], Figures]"

# Padded tokens per forward pass of an encoder that cannot run packed. They affect rounding, so they are not settings.
CPU_TOKENS, GPU_TOKENS = 512, 1 << 20


def compute(run: TrainingState, batch: Batch, config: TrainingConfig, momentum: float | None) -> Figures:
    """Compute the device part of a step, for a given momentum and the learning rate set in the optimizer.

    Raises:
        FloatingPointError: As in `take_step`.
    """
    objective, step = run.objective, run.step + 1
    device = objective.online.device
    on_cpu = device.type == "cpu"
    with arithmetic(device, bf16=config.precision == "bf16"):
        loss = objective(batch, CPU_TOKENS if on_cpu else GPU_TOKENS)
    agree = partial(agree_on_gradients, objective, run.learning)
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
    norm = clip_gradients(parameters, clip)
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
