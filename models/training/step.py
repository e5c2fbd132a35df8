"""One optimizer step: loss → gradients → clip → optimizer → target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.runtime.arithmetic import arithmetic
from models.training.distributed import agree_on_gradients
from models.training.metrics import StepMetrics, check_finite
from models.training.optimizer import clip_gradients, learning_rate, set_step

if TYPE_CHECKING:
    from models.objectives.objective import Batch
    from models.training.config import TrainingConfig
    from models.training.state import TrainingState

# Padded tokens a forward pass of an encoder that cannot run packed. Part of the result's last bits, hence no settings.
CPU_TOKENS, GPU_TOKENS = 512, 1 << 20


def take_step(run: TrainingState, batch: Batch, config: TrainingConfig) -> StepMetrics:
    """Train on one batch.

    On a CPU the figures are looked at before they do anything; a GPU is not waited for, and whoever reads them later
    finds what was not finite.

    Raises:
        FloatingPointError: On a CPU, loss or gradient norm is not finite; its arguments are the step, the quantity's
            name and its value. Weights and target are as before the step.
    """
    objective, step = run.objective, run.step + 1
    rate, momentum = learning_rate(step, run.total, config), objective.momentum(step, run.total)
    set_step(run.optimizer, rate, step, config)
    device = objective.online.device
    on_cpu = device.type == "cpu"
    with arithmetic(device, bf16=config.precision == "bf16"):
        loss = objective(batch, CPU_TOKENS if on_cpu else GPU_TOKENS)
    if on_cpu:
        check_finite(step, loss, "loss")
    run.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    agree_on_gradients(objective, run.learning)
    grad_norm = clip_gradients(run.learning, config.clip)
    if on_cpu:
        check_finite(step, grad_norm, "gradient norm")
    run.optimizer.step()
    if momentum is not None:
        objective.update_target(momentum)
    run.step = step
    return StepMetrics(loss, grad_norm, rate, momentum)
