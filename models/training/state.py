"""State of a training run between two steps, with snapshot and restore.

A snapshot contains all state that decides the rest of the run: online, target, predictor, target statistics, optimizer,
the generators of numpy and torch, the step (which decides data order and both schedules), the best encoder so far and
the log. On a CPU, resuming with the same number of threads gives bit for bit the result of the uninterrupted run; on a
GPU, up to the rounding of kernels that add in no fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from models.runtime.random_state import capture_rng, restore_rng
from models.training.dev_evaluation import Evaluation
from models.training.metrics import EVALUATED, LogRow
from models.training.optimizer import optimizer_tensors, restore_optimizers
from models.training.snapshots import Snapshot, copied

if TYPE_CHECKING:
    import torch

    from models.objectives.objective import Objective


@dataclass
class TrainingState:
    """The objects that change during training."""

    fingerprint: str
    total: int
    objective: Objective
    optimizer: torch.optim.Optimizer
    step: int = 0
    log: list[LogRow] = field(default_factory=list)
    best_dev: float | None = None
    best_step: int = 0
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    finding: str = ""
    start: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether the run is finished: all steps are taken, or training was stopped as harmful."""
        return self.step >= self.total or bool(self.finding)

    @cached_property
    def learning(self) -> list[torch.nn.Parameter]:
        """Parameters that the optimizer may change; cached, because collecting them takes as long as a layer's pass."""
        return self.objective.learning_parameters()

    def snapshot(self) -> Snapshot:
        """Return a copy of the whole state."""
        tensors = {name: copied(module.state_dict()) for name, module in self.objective.saved_modules().items()}
        tensors["optimizer"] = copied(optimizer_tensors([self.optimizer]))
        tensors["rng"] = copied(capture_rng())
        tensors["best"] = dict(self.best)
        counters = {
            "total": self.total,
            "best_dev": self.best_dev,
            "best_step": self.best_step,
            "finding": self.finding,
        }
        return Snapshot(self.fingerprint, self.step, tensors, counters | {"log": [dict(row) for row in self.log]})

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the whole state from a snapshot."""
        for name, module in self.objective.saved_modules().items():
            module.load_state_dict(snapshot.tensors[name])
        restore_optimizers([self.optimizer], snapshot.tensors["optimizer"])
        restore_rng(snapshot.tensors["rng"])
        counters = snapshot.counters
        self.step, self.log = snapshot.step, [dict(row) for row in counters["log"]]
        self.best_dev, self.best_step = counters["best_dev"], counters["best_step"]
        self.finding = counters["finding"]
        self.best = dict(snapshot.tensors["best"])

    def keep_best(self, evaluation: Evaluation) -> None:
        """Remember the online encoder if this evaluation is the best so far."""
        score = evaluation.dev_spearman
        if score is None or score != score or (self.best_dev is not None and score <= self.best_dev):
            return
        self.best_dev, self.best_step = score, evaluation.step
        self.best = copied(self.objective.online.state_dict())

    def give_up(self, finding: str) -> None:
        """Store why the run ends, and select the original encoder unless a later evaluation was better."""
        self.finding = finding
        dev = self.history()[0].dev_spearman
        if not self.best or (dev is not None and self.best_dev is not None and dev >= self.best_dev):
            self.best, self.best_dev, self.best_step = self.start, dev, 0

    def history(self) -> list[Evaluation]:
        """Return all evaluations in the log."""
        rows = [row for row in self.log if row["alignment"] is not None]
        return [Evaluation(step=int(row["step"] or 0), **{name: row[name] for name in EVALUATED}) for row in rows]  # type: ignore[arg-type]
