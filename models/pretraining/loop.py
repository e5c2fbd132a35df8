"""The pre-training loop: batches in, a trained network out; resumable, interruptible, budgeted."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from models.encoder.arithmetic import arithmetic
from models.pretraining.config import LearningConfig
from models.pretraining.optimizer import build_optimizers, learning_rate, set_learning_rate
from models.pretraining.state import RunState, load_state, save_state

logger = logging.getLogger(__name__)

Progress = Callable[[int, int, str], None]
LOG_EVERY_STEPS = 50
SAVE_EVERY_S = 180.0


class Examples(Protocol):
    """The examples of a run: which go together, and what they cost."""

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """Batches of example numbers, in order; equal for equal epochs."""

    def loss(self, model: nn.Module, batch: np.ndarray, generator: np.random.Generator) -> tuple[Tensor, int]:
        """Mean loss of one batch, and the number of tokens it was taken over."""


def pretrain(
    model: nn.Module,
    examples: Examples,
    config: LearningConfig,
    on_progress: Progress,
    folder: Path | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunState:
    """Train `model` in place until the budget is spent or `should_stop`.

    Args:
        model: The network.
        examples: Batches and loss.
        config: Optimizer, schedule, budget, seed.
        on_progress: Told (done, total, detail) every 50 steps; seconds where the budget is wall clock.
        folder: Where the state is kept every three minutes and at the end; a run found there goes on.
        should_stop: Asked after each step; true ends the run with its state saved.

    Returns:
        The final counters and loss curve.
    """
    optimizers = build_optimizers(model, config)
    state = load_state(folder, model, optimizers) if folder else RunState()
    model.train()
    started, saved = time.monotonic() - state.elapsed_s, time.monotonic()
    window: list[Tensor] = []
    while spent(config, state) < 1.0 and not should_stop():
        batches = examples.plan(state.epoch)
        while state.position < len(batches) and spent(config, state) < 1.0 and not should_stop():
            set_learning_rate(optimizers, learning_rate(config, state.step, spent(config, state)))
            generator = np.random.default_rng([config.seed, state.epoch, state.position])
            loss, tokens = _step(model, examples, batches[state.position], generator, optimizers, config)
            window.append(loss)
            state.step, state.position, state.tokens = state.step + 1, state.position + 1, state.tokens + tokens
            state.elapsed_s = time.monotonic() - started
            if state.step % LOG_EVERY_STEPS == 0:
                _report(state, config, window, on_progress)
            if folder and time.monotonic() - saved > SAVE_EVERY_S:
                save_state(folder, model, optimizers, state)
                saved = time.monotonic()
        if state.position >= len(batches):
            state.epoch, state.position = state.epoch + 1, 0
    if folder:
        save_state(folder, model, optimizers, state)
    return state


def spent(config: LearningConfig, state: RunState) -> float:
    """Share of the budget that is spent: elapsed time where `minutes` is set, steps otherwise."""
    if config.minutes is not None:
        return state.elapsed_s / (60.0 * config.minutes)
    return state.step / config.steps


def _step(
    model: nn.Module,
    examples: Examples,
    batch: np.ndarray,
    generator: np.random.Generator,
    optimizers: list[torch.optim.Optimizer],
    config: LearningConfig,
) -> tuple[Tensor, int]:
    device = next(model.parameters()).device
    with arithmetic(device, bf16=config.bf16):
        loss, tokens = examples.loss(model, batch, generator)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.detach(), tokens


def _report(state: RunState, config: LearningConfig, window: list[Tensor], on_progress: Progress) -> None:
    mean = float(torch.stack(window).mean())
    window.clear()
    state.losses.append((state.step, round(mean, 4)))
    timed = config.minutes is not None
    done, total = (int(state.elapsed_s), int(60 * (config.minutes or 0))) if timed else (state.step, config.steps)
    detail = f"step {state.step} epoch {state.epoch} loss {mean:.3f} {state.tokens / state.elapsed_s:.0f} tokens/s"
    logger.info("%s (%d of %d)", detail, done, total)
    on_progress(done, total, detail)
