"""How far a pre-training run has come, as a snapshot and back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import torch

from models.training.optimizer import optimizer_tensors, restore_optimizers
from models.training.snapshots import Snapshot, copied

if TYPE_CHECKING:
    from torch import nn


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
