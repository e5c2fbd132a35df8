"""The pre-training loop: batches in, a trained network out; resumable and budgeted."""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from models.errors import TrainingError
from models.runtime.arithmetic import arithmetic
from models.runtime.precision import settled
from models.training.metrics import check_finite
from models.training.optimizer import (
    clip_gradients,
    make_pretraining_optimizers,
    optimizer_tensors,
    restore_optimizers,
    set_learning_rate,
)
from models.training.snapshots import Saving, Snapshot, copied, fingerprint, newest_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from models.pretraining.config import LearningConfig
    from models.runtime.progress import OnProgress

logger = logging.getLogger(__name__)

LOG_EVERY_STEPS = 50
SAVE_MINUTES, KEPT = 3.0, 2


class Examples(Protocol):
    """The examples of a run: which go together, and what they cost."""

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """Batches of example numbers, in order; equal for equal epochs."""

    def loss(self, model: nn.Module, batch: np.ndarray, generator: np.random.Generator) -> tuple[Tensor, int]:
        """Mean loss of one batch, and the number of tokens it was taken over."""


@dataclass
class RunState:
    """The counters of a run.

    Attributes:
        step: Optimizer steps done.
        epoch: The present pass over the examples, from 0.
        position: Batches of it already used.
        elapsed_s: Seconds spent, those of interrupted calls included.
        tokens: Tokens that the loss was taken over.
        losses: (step, mean loss since the last entry).
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    elapsed_s: float = 0.0
    tokens: int = 0
    losses: list[tuple[int, float]] = field(default_factory=list)


def take_snapshot(
    fingerprint: str, model: nn.Module, optimizers: list[torch.optim.Optimizer], state: RunState
) -> Snapshot:
    """Copy weights, moments and counters out."""
    tensors = {"model": copied(dict(model.named_parameters())), "optimizer": copied(optimizer_tensors(optimizers))}
    return Snapshot(fingerprint, state.step, tensors, asdict(state))


def restore(snapshot: Snapshot, model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> RunState:
    """Copy weights and moments back in; the counters to go on from."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(snapshot.tensors["model"][name])
    restore_optimizers(optimizers, snapshot.tensors["optimizer"])
    losses = [(int(step), float(loss)) for step, loss in snapshot.counters["losses"]]
    return RunState(**{**snapshot.counters, "losses": losses})


def pretrain(
    model: nn.Module,
    examples: Examples,
    config: LearningConfig,
    on_progress: OnProgress,
    folder: Path | None = None,
) -> RunState:
    """Train `model` in place until the budget is spent.

    Args:
        model: The network.
        examples: Batches and loss.
        config: Optimizer, schedule, budget, seed.
        on_progress: Told (done, total, detail) every 50 steps; seconds where the budget is wall clock.
        folder: Of this run alone: snapshots every three minutes and at the end; a run found there goes on.

    Returns:
        The final counters and loss curve.

    Raises:
        TrainingError: A loss or gradient is not finite, or (ResumeError) `folder` holds the snapshot of another run.
    """
    config = settled(config, lambda: str(next(model.parameters()).device))
    optimizers = make_pretraining_optimizers(
        model,
        lr=config.peak_lr,
        beta2=config.beta2,
        weight_decay=config.weight_decay,
        muon=config.optimizer == "muon",
    )
    identity = _identity(model, examples, config)
    snapshot = newest_snapshot(folder, identity) if folder else None
    state = restore(snapshot, model, optimizers) if snapshot else RunState()
    saving = Saving(folder, None, SAVE_MINUTES, KEPT) if folder else None
    model.train()
    started = time.monotonic() - state.elapsed_s
    window: list[Tensor] = []
    while spent(config, state) < 1.0:
        batches = examples.plan(state.epoch)
        while state.position < len(batches) and spent(config, state) < 1.0:
            set_learning_rate(optimizers, learning_rate(config, state.step, spent(config, state)))
            loss, tokens = _step(model, examples, batches[state.position], optimizers, config, state)
            window.append(loss)
            state.step, state.position, state.tokens = state.step + 1, state.position + 1, state.tokens + tokens
            state.elapsed_s = time.monotonic() - started
            if state.step % LOG_EVERY_STEPS == 0:
                _report(state, config, window, on_progress)
            if saving and saving.is_due(state.step):
                saving.save(take_snapshot(identity, model, optimizers, state))
        if state.position >= len(batches):
            state.epoch, state.position = state.epoch + 1, 0
    if saving:
        saving.save(take_snapshot(identity, model, optimizers, state))
    return state


def learning_rate(config: LearningConfig, step: int, fraction: float) -> float:
    """Return the rate of linear warm-up by steps, then linear decay to zero by the share of the budget that is spent.

    Args:
        config: Peak rate and warm-up.
        step: Steps already taken.
        fraction: Share of the budget spent, in [0, 1].

    Returns:
        The rate of the next step.
    """
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    return config.peak_lr * warmup * max(0.0, 1.0 - fraction)


def spent(config: LearningConfig, state: RunState) -> float:
    """Share of the budget that is spent: elapsed time where `minutes` is set, steps otherwise."""
    if config.minutes is not None:
        return state.elapsed_s / (60.0 * config.minutes)
    return state.step / config.steps


def _identity(model: nn.Module, examples: Examples, config: LearningConfig) -> str:
    """Which run this is: its settings, first weights and the batches of its first epoch."""
    digest = hashlib.sha256()
    for batch in examples.plan(0):
        digest.update(batch.tobytes())
    return fingerprint(model, config.model_dump_json(), digest.hexdigest())


def _step(
    model: nn.Module,
    examples: Examples,
    batch: np.ndarray,
    optimizers: list[torch.optim.Optimizer],
    config: LearningConfig,
    state: RunState,
) -> tuple[Tensor, int]:
    generator = np.random.default_rng([config.seed, state.epoch, state.position])
    device = next(model.parameters()).device
    with arithmetic(device, bf16=config.precision == "bf16"):
        loss, tokens = examples.loss(model, batch, generator)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = clip_gradients(list(model.parameters()), config.clip_norm)
    _check_finite(state.step + 1, loss, norm)  # before the weights change, so that every snapshot is finite
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.detach(), tokens


def _check_finite(step: int, loss: Tensor, norm: Tensor) -> None:
    try:
        check_finite(step, loss, "loss")
        check_finite(step, norm, "gradient norm")
    except FloatingPointError as error:
        _, quantity, value = error.args
        raise TrainingError(
            f"{quantity} is {value} at step {step} of pre-training, expected a finite number; lower peak_lr, or set "
            "precision to fp32"
        ) from error


def _report(state: RunState, config: LearningConfig, window: list[Tensor], on_progress: OnProgress) -> None:
    mean = float(torch.stack(window).mean())
    window.clear()
    state.losses.append((state.step, round(mean, 4)))
    timed = config.minutes is not None
    done, total = (int(state.elapsed_s), int(60 * (config.minutes or 0))) if timed else (state.step, config.steps)
    detail = f"step {state.step} epoch {state.epoch} loss {mean:.3f} {state.tokens / state.elapsed_s:.0f} tokens/s"
    logger.info("%s (%d of %d)", detail, done, total)
    on_progress(done, total, detail)
