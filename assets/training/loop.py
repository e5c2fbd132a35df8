"""Pre-training by the loop, step and snapshots of training, with a schedule that follows a budget; and export."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bsl.models.errors import TrainingError
from bsl.models.runtime.device import arithmetic
from bsl.models.runtime.precision import with_resolved_precision
from bsl.models.training.loop import run_steps
from bsl.models.training.optimizer import descend
from bsl.models.training.snapshots import (
    Execution,
    Saving,
    Snapshot,
    copied,
    network_digest,
    newest_snapshot,
    optimizer_tensors,
    restore_optimizers,
)

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from assets.training.config import LearningConfig
    from assets.training.masked_lm import MaskedSentences
    from assets.training.translation import TranslationPairs
    from bsl.models.runtime.progress import OnProgress

logger = logging.getLogger(__name__)

LOG_EVERY_STEPS = 50
SAVE_MINUTES = 3.0
Examples: TypeAlias = "MaskedSentences | TranslationPairs"
"""The examples of a run: batches of an epoch (`plan`), and the mean loss and number of tokens of a batch (`loss`)."""
COUNTERS = ("step", "epoch", "position", "elapsed_s", "tokens", "losses")


@dataclass
class RunState:
    """State of a pre-training run between two steps.

    Attributes:
        model: The network.
        optimizers: Optimizers of its parameters.
        config: Optimizer, schedule, budget, seed.
        step: Optimizer steps done.
        epoch: Current pass over the examples, from 0.
        position: Number of this epoch's batches already used.
        elapsed_s: Seconds spent, with interrupted calls.
        tokens: Total number of tokens, as `Examples.loss` counts them.
        losses: (step, mean loss since the last entry).
    """

    model: nn.Module
    optimizers: list[torch.optim.Optimizer]
    config: LearningConfig
    step: int = 0
    epoch: int = 0
    position: int = 0
    elapsed_s: float = 0.0
    tokens: int = 0
    losses: list[tuple[int, float]] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """Spent share of the budget: by elapsed time if `minutes` is set, otherwise by steps."""
        if self.config.minutes is not None:
            return self.elapsed_s / (60.0 * self.config.minutes)
        return self.step / self.config.steps

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= 1.0

    def snapshot(self, fingerprint: str) -> Snapshot:
        """Return a copy of weights, moments and counters."""
        moments = copied(optimizer_tensors(self.optimizers))
        tensors = {"model": copied(dict(self.model.named_parameters())), "optimizer": moments}
        return Snapshot(fingerprint, self.step, tensors, {name: getattr(self, name) for name in COUNTERS})

    def restore(self, snapshot: Snapshot) -> None:
        """Restore weights, moments and counters from a snapshot."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(snapshot.tensors["model"][name])
        restore_optimizers(self.optimizers, snapshot.tensors["optimizer"])
        for name in COUNTERS:
            setattr(self, name, snapshot.counters[name])


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
        on_progress: Called with (done, total, detail) every 50 steps; in seconds if the budget is wall-clock time.
        folder: Folder for this run's snapshots alone, written every three minutes and at the end. If it has snapshots,
            the run resumes.

    Raises:
        TrainingError: A loss or gradient is not finite, or (ResumeError) `folder` has a snapshot of another run.
    """
    config = with_resolved_precision(config, lambda: str(next(model.parameters()).device))
    run = RunState(model, make_optimizers(model, config), config)
    identity = _identity(model, examples, config)
    if folder and (saved := newest_snapshot(folder, identity)):
        run.restore(saved)
    saving = Saving(folder, Execution(save_minutes=SAVE_MINUTES)) if folder else None
    model.train()
    started = time.monotonic() - run.elapsed_s
    batches, window = examples.plan(run.epoch), list[Tensor]()

    def take() -> None:
        nonlocal batches
        if run.position >= len(batches):
            run.epoch, run.position = run.epoch + 1, 0
            batches = examples.plan(run.epoch)
        rate = learning_rate(config, run.step, run.spent)
        for group in (group for optimizer in run.optimizers for group in optimizer.param_groups):
            group["lr"] = rate
        window.append(_step(run, examples, batches[run.position]))
        run.step, run.position, run.elapsed_s = run.step + 1, run.position + 1, time.monotonic() - started
        if run.step % LOG_EVERY_STEPS == 0:
            _report(run, window, on_progress)

    run_steps(run, take, lambda: run.snapshot(identity), saving)
    return run


def make_optimizers(network: nn.Module, config: LearningConfig) -> list[torch.optim.Optimizer]:
    """Return AdamW for all parameters, or Muon for hidden matrices and AdamW for the others, in a fixed order.

    Muon's updates are scaled to AdamW's size (arXiv 2502.16982). Embeddings, norms and biases have no weight decay.

    Args:
        network: AdamW always gets its input embedding and parameters tied to that.
        config: Choice and settings of the optimizer.
    """
    lr, weight_decay = config.peak_lr, config.weight_decay
    embeddings = {id(p) for m in network.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    trainable = [p for p in network.parameters() if p.requires_grad]
    matrices = [p for p in trainable if p.ndim == 2 and id(p) not in embeddings]
    others = [p for p in trainable if p.ndim != 2 or id(p) in embeddings]
    groups = [{"params": others, "weight_decay": 0.0}]
    if config.optimizer == "adamw":
        groups.append({"params": matrices, "weight_decay": weight_decay})
    adamw = torch.optim.AdamW(groups, lr=lr, betas=(0.9, config.beta2), eps=1e-8, fused=True)
    if config.optimizer == "adamw":
        return [adamw]
    return [adamw, torch.optim.Muon(matrices, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")]


def learning_rate(config: LearningConfig, step: int, fraction: float) -> float:
    """Return the learning rate of the next step: linear warm-up by steps, linear decay to zero by the spent budget.

    Args:
        config: Peak rate and warm-up.
        step: Steps already taken.
        fraction: Spent share of the budget, in [0, 1].
    """
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    return config.peak_lr * warmup * max(0.0, 1.0 - fraction)


def _identity(model: nn.Module, examples: Examples, config: LearningConfig) -> str:
    """Return the digest of a run's settings, initial weights and first epoch's batches."""
    digest = hashlib.sha256()
    for batch in examples.plan(0):
        digest.update(batch.tobytes())
    return network_digest(model, config.model_dump_json(), digest.hexdigest())


def _step(run: RunState, examples: Examples, batch: np.ndarray) -> Tensor:
    config, device = run.config, next(run.model.parameters()).device
    generator = np.random.default_rng([config.seed, run.epoch, run.position])
    with arithmetic(device, bf16=config.precision == "bf16"):
        loss, tokens = examples.loss(run.model, batch, generator)
    try:  # before the weights change, so that every snapshot is finite
        descend(loss, list(run.model.parameters()), run.optimizers, config.clip_norm, run.step + 1)
    except FloatingPointError as error:
        step, quantity, value = error.args
        raise TrainingError(
            f"{quantity} is {value} at step {step} of pre-training, expected a finite number. Lower peak_lr, or set "
            "precision=fp32."
        ) from error
    run.tokens += tokens
    return loss.detach()


def _report(run: RunState, window: list[Tensor], on_progress: OnProgress) -> None:
    mean = float(torch.stack(window).mean())
    window.clear()
    run.losses.append((run.step, round(mean, 4)))
    minutes, steps = run.config.minutes, run.config.steps
    done, total = (run.step, steps) if minutes is None else (int(run.elapsed_s), int(60 * minutes))
    detail = f"step {run.step} epoch {run.epoch} loss {mean:.3f} {run.tokens / run.elapsed_s:.0f} tokens/s"
    logger.info("%s (%d of %d)", detail, done, total)
    on_progress(done, total, detail)


def export_half(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Save weights as float16 safetensors, with configuration and tokenizer, to `folder`.

    The configuration states float32, so that `from_pretrained` widens the weights; float16 arithmetic is slow on CPUs.
    The folder is created if needed, and files of the same names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    halve(folder)


def halve(folder: Path) -> None:
    """Convert the weights in a model's folder to float16, but state float32 in its configuration.

    Args:
        folder: Has `model.safetensors`, and `config.json` if a transformer is in it; only that states a precision.
    """
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    half = {name: value.to(torch.float16) if value.is_floating_point() else value for name, value in tensors.items()}
    save_file(half, weights, metadata={"format": "pt"})
    config_file = folder / "config.json"
    config = json.loads(config_file.read_text()) if config_file.exists() else {}
    if "model_type" in config:
        config_file.write_text(json.dumps(config | {"dtype": "float32"}, indent=2, sort_keys=True) + "\n")
