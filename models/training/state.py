"""A training run between two steps: the live objects, and their snapshot as tensors and JSON.

A snapshot holds everything that decides the rest of the run: online, target, predictor, target statistics, optimizer,
the generators of numpy and torch, the step (the data order and both schedules follow from it), the best
encoder so far and the log. On a CPU, restoring it and going on with as many threads gives bit for bit what the
uninterrupted run gives; on a GPU, up to the rounding of kernels that add in no fixed order.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from models.training.health import Evaluation
from models.training.randomness import capture_rng, restore_rng

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.objectives.base import Objective
    from models.training.config import TrainingConfig
    from models.training.health import DevSet
    from models.training.token_file import TokenFile

LogRow = dict[str, float | int | None]
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class TrainingState:
    """A snapshot, ready to be written.

    Attributes:
        fingerprint: Which run this is: data, configuration and first weights.
        step: Optimizer steps done.
        total: Optimizer steps of the whole run.
        tensors: File stem → tensor name → tensor, on the CPU and independent of the run.
        log: Rows of the training log so far.
        best_dev: Best dev Spearman so far; None without one.
        best_step: Its step; 0 without one.
    """

    fingerprint: str
    step: int
    total: int
    tensors: dict[str, Tensors]
    log: list[LogRow]
    best_dev: float | None
    best_step: int


@dataclass
class LiveRun:
    """The objects that change during training."""

    fingerprint: str
    total: int
    objective: Objective
    optimizer: torch.optim.Optimizer
    step: int = 0
    log: list[LogRow] = field(default_factory=list)
    best_dev: float | None = None
    best_step: int = 0
    best: Tensors = field(default_factory=dict)

    def snapshot(self) -> TrainingState:
        """Copy everything out."""
        tensors = {name: _copied(getattr(self.objective, name).state_dict()) for name in self.objective.parts}
        tensors["optimizer"] = _copied(_flat(self.optimizer.state_dict()["state"]))
        tensors["rng"] = _copied(capture_rng())
        tensors["best"] = dict(self.best)
        return TrainingState(
            self.fingerprint,
            self.step,
            self.total,
            tensors,
            [dict(row) for row in self.log],
            self.best_dev,
            self.best_step,
        )

    def restore(self, state: TrainingState) -> None:
        """Copy everything back in."""
        for name in self.objective.parts:
            getattr(self.objective, name).load_state_dict(state.tensors[name])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": _nested(state.tensors["optimizer"]), "param_groups": groups})
        restore_rng(state.tensors["rng"])
        self.step, self.log = state.step, [dict(row) for row in state.log]
        self.best_dev, self.best_step, self.best = state.best_dev, state.best_step, dict(state.tensors["best"])

    def keep_best(self, seen: Evaluation) -> None:
        """Remember the online encoder if this evaluation is the best so far."""
        score = seen.dev_spearman
        if score is None or score != score or (self.best_dev is not None and score <= self.best_dev):
            return
        self.best_dev, self.best_step = score, seen.step
        self.best = _copied(self.objective.online.state_dict())

    def history(self) -> list[Evaluation]:
        """All evaluations in the log."""
        names = ("alignment", "uniformity", "std", "effective_rank", "dev_spearman")
        rows = [row for row in self.log if row["alignment"] is not None]
        return [Evaluation(int(row["step"] or 0), **{name: row[name] for name in names}) for row in rows]  # type: ignore[arg-type]


def run_fingerprint(config: TrainingConfig, objective: Objective, pairs: TokenFile, dev: DevSet | None) -> str:
    """SHA-256 of all that decides a run: settings, first weights, pairs with their tokenizer, dev set."""
    digest = hashlib.sha256(config.model_dump_json().encode())
    digest.update(objective.online.config.model_dump_json().encode())
    digest.update(pairs.digest.encode())
    for name, tensor in objective.online.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    if dev is not None:
        digest.update(json.dumps([list(dev.texts_1), list(dev.texts_2), [float(s) for s in dev.scores]]).encode())
    return digest.hexdigest()


def _copied(tensors: Mapping[str, torch.Tensor]) -> Tensors:
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


def _flat(state: dict[int, dict[str, torch.Tensor]]) -> Tensors:
    return {f"{number}.{name}": tensor for number, slots in state.items() for name, tensor in slots.items()}


def _nested(flat: Tensors) -> dict[int, dict[str, Any]]:
    out: dict[int, dict[str, Any]] = {}
    for key, tensor in flat.items():
        number, name = key.split(".", 1)
        out.setdefault(int(number), {})[name] = tensor.clone()
    return out
