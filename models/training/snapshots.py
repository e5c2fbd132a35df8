"""How a run executes, its state, and snapshots of it on disk: a kill at any moment leaves finished snapshots intact.

    <work>/step-00000200/<group>.safetensors     such as online, predictor, optimizer, rng, best
                         state.json              step, counters, and the sha256 of each safetensors file

Snapshots are safetensors and JSON. A snapshot is renamed into place once it is on disk. If one is damaged later, the
run resumes from the one before it.

A snapshot contains all state that decides the rest of the run: online, target, predictor, target statistics, optimizer,
the generators of numpy and torch, the step (which decides data order and both schedules), the best encoder so far and
the log. On a CPU, resuming with the same number of threads gives bit for bit the result of the uninterrupted run; on a
GPU, up to the rounding of kernels that add in no fixed order.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
import time
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file

from bsl.models.errors import DamagedSnapshotError, ResumeError
from bsl.models.runtime.random_state import capture_rng, restore_rng
from bsl.models.training.dev_evaluation import StepEvaluation
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.digests import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from bsl.models.objectives.objective import Objective
    from bsl.models.runtime.progress import OnProgress
    from bsl.models.training.config import TrainingConfig
    from bsl.models.training.metrics import LogRow
    from bsl.models.training.token_cache import TokenCache

logger = logging.getLogger(__name__)

FORMAT = 3
PREFIX, HEAD = "step-", "state.json"
COUNTERS = ("total", "best_dev", "best_step", "finding")


@dataclass(frozen=True)
class Execution:
    """Device, snapshots, stop requests and progress reports of a run; they change the result by rounding only.

    Attributes:
        work: Folder for tokens and snapshots of this run alone; if it has snapshots, the run resumes from the newest
            intact one. None saves nothing.
        device: Where to compute; transforms are fitted on the CPU.
        save_every: Steps between snapshots; None uses the default of training or transform.
        save_minutes: Minutes after which a snapshot is due in any case; None saves by number of steps only.
        keep: Number of newest snapshots to keep.
        should_stop: Called after each step; True saves and raises InterruptedRunError.
        on_progress: Called with (steps done, total steps, detail); by a training at most once a second.
        static_shapes: Whether to pad batches to a few shapes, for which a GPU captures the step; None: only on a GPU.
    """

    work: Path | None = None
    device: str | torch.device = "cpu"
    save_every: int | None = None
    save_minutes: float | None = None
    keep: int = 2
    should_stop: Callable[[], bool] | None = None
    on_progress: OnProgress | None = None
    static_shapes: bool | None = None


@dataclass(frozen=True)
class Snapshot:
    """All state that decides the rest of a run.

    Attributes:
        fingerprint: Identity of the run: data, configuration and initial weights.
        step: Optimizer steps done.
        tensors: File stem → tensor name → tensor, on the CPU and independent of the run.
        counters: Further state of the run, as JSON values.
    """

    fingerprint: str
    step: int
    tensors: dict[str, dict[str, torch.Tensor]]
    counters: dict[str, Any]


def copied(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copy tensors to the CPU, so that later changes of the originals do not affect them."""
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


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
        tensors = {name: copied(module.state_dict()) for name, module in self.objective.named_children()}
        tensors["optimizer"] = copied(optimizer_tensors([self.optimizer]))
        tensors["rng"] = copied(capture_rng())
        tensors["best"] = dict(self.best)
        counters = {name: getattr(self, name) for name in COUNTERS}
        return Snapshot(self.fingerprint, self.step, tensors, counters | {"log": [dict(row) for row in self.log]})

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the whole state from a snapshot."""
        for name, module in self.objective.named_children():
            module.load_state_dict(snapshot.tensors[name])
        restore_optimizers([self.optimizer], snapshot.tensors["optimizer"])
        restore_rng(snapshot.tensors["rng"])
        for name in COUNTERS:
            setattr(self, name, snapshot.counters[name])
        self.step, self.log = snapshot.step, [dict(row) for row in snapshot.counters["log"]]
        self.best = dict(snapshot.tensors["best"])

    def keep_best(self, evaluation: StepEvaluation) -> None:
        """Remember the online encoder if this evaluation is the best so far."""
        score = evaluation.dev_spearman
        if score is None or score != score or (self.best_dev is not None and score <= self.best_dev):
            return
        self.best_dev, self.best_step = score, evaluation.step
        self.best = copied(self.objective.online.state_dict())

    def stop_training(self, finding: str) -> None:
        """Store why the run ends, and select the original encoder unless a later evaluation was better."""
        self.finding = finding
        dev = self.history()[0].dev_spearman
        if not self.best or (dev is not None and self.best_dev is not None and dev >= self.best_dev):
            self.best, self.best_dev, self.best_step = self.start, dev, 0

    def history(self) -> list[StepEvaluation]:
        """Return all evaluations in the log."""
        rows = [row for row in self.log if row["alignment"] is not None]
        names = [part.name for part in fields(StepEvaluation)]
        return [StepEvaluation(**{name: row[name] for name in names}) for row in rows]  # type: ignore[arg-type]


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, torch.Tensor]:
    """Return the state of all optimizers: `<optimizer>.<parameter>.<quantity>` → tensor."""
    return {
        f"{number}.{parameter}.{quantity}": torch.as_tensor(value)
        for number, optimizer in enumerate(optimizers)
        for parameter, state in optimizer.state_dict()["state"].items()
        for quantity, value in state.items()
    }


def restore_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: dict[str, torch.Tensor]) -> None:
    """Restore the state that `optimizer_tensors` returned; groups and rates stay as configured."""
    states: list[dict[int, dict[str, Any]]] = [{} for _ in optimizers]
    for key, tensor in tensors.items():
        number, parameter, quantity = key.split(".", 2)
        states[int(number)].setdefault(int(parameter), {})[quantity] = tensor.clone()
    for optimizer, state in zip(optimizers, states, strict=True):
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class Saving:
    """When and where to save a run: every `steps` steps, and every `minutes` minutes if steps take long."""

    def __init__(self, folder: Path, execution: Execution, steps: int | None = None) -> None:
        """Save to a folder as `execution` says; `steps` is its default number of steps between snapshots."""
        self.folder = folder
        self._steps, self._keep = execution.save_every or steps, execution.keep
        self._seconds = math.inf if execution.save_minutes is None else 60 * execution.save_minutes
        self._saved = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Whether a snapshot should follow this step."""
        by_steps = self._steps is not None and step % self._steps == 0
        return by_steps or time.monotonic() - self._saved >= self._seconds

    def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot now."""
        save_snapshot(self.folder, snapshot, self._keep)
        self._saved = time.monotonic()


def write_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Write a snapshot's files into `folder`, which is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensors in sorted(snapshot.tensors.items()):
        save_file(tensors, folder / f"{name}.safetensors")
    head = {
        "format": FORMAT,
        "fingerprint": snapshot.fingerprint,
        "step": snapshot.step,
        "files": {name: file_sha256(folder / f"{name}.safetensors") for name in sorted(snapshot.tensors)},
        "counters": snapshot.counters,
    }
    (folder / HEAD).write_text(json.dumps(head, sort_keys=True) + "\n", encoding="utf-8")


def read_snapshot(folder: Path) -> Snapshot:
    """Read a snapshot back.

    Raises:
        DamagedSnapshotError: A file is missing or differs from its checksum.
        ResumeError: The format is unknown.
        OSError: A file cannot be read now; the snapshot may still be intact.
    """
    try:
        head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
        if head["format"] != FORMAT:
            raise ResumeError(
                f"{folder}: snapshot format {head['format']}, expected {FORMAT}. Resume with the version that wrote "
                "it, or delete the folder to start over."
            )
        for name, expected in head["files"].items():
            actual = file_sha256(folder / f"{name}.safetensors")
            if actual != expected:
                raise DamagedSnapshotError(
                    f"{folder}/{name}.safetensors: sha256 {actual[:12]}…, expected {expected[:12]}…. Delete the folder."
                )
        tensors = {name: load_file(folder / f"{name}.safetensors") for name in head["files"]}
        return Snapshot(head["fingerprint"], head["step"], tensors, head["counters"])
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise DamagedSnapshotError(f"{folder}: not a complete snapshot ({error!r}). Delete the folder.") from error


def save_snapshot(work: Path, snapshot: Snapshot, keep: int) -> Path:
    """Add a snapshot to the work folder, then delete all but the newest `keep`.

    Two processes of the same training may share a work folder. Their snapshots of one step have the same content, so
    the first one is used.
    """
    final = work / f"{PREFIX}{snapshot.step:08d}"
    with atomic_write(final, keep_existing=True) as unfinished:
        write_snapshot(unfinished, snapshot)
    for old in _snapshots(work)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def newest_snapshot(work: Path, fingerprint: str) -> Snapshot | None:
    """Return the newest intact snapshot of this run, or None; remove damaged snapshots with a warning.

    Raises:
        ResumeError: The newest intact snapshot is of another run (other data, settings or initial weights), or of an
            unknown format.
        OSError: A snapshot cannot be read now.
    """
    for folder in _snapshots(work):
        try:
            snapshot = read_snapshot(folder)
        except DamagedSnapshotError as error:
            logger.warning("removing a damaged snapshot: %s", error)
            shutil.rmtree(folder, ignore_errors=True)
            continue
        if snapshot.fingerprint != fingerprint:
            raise ResumeError(
                f"{folder}: the snapshot (step {snapshot.step}) is of another run, with other data, settings, dev set "
                f"or initial weights. Give another work folder, or delete {work}."
            )
        return snapshot
    return None


def _snapshots(work: Path) -> list[Path]:
    return sorted(work.glob(f"{PREFIX}*"), reverse=True)


def run_fingerprint(config: TrainingConfig, objective: Objective, pairs: TokenCache, dev: pl.DataFrame | None) -> str:
    """Return the SHA-256 of all inputs of a run: settings, initial weights, pairs with their tokenizer, dev set."""
    settings = [config.model_dump_json(), objective.online.config.model_dump_json()]
    scored = [dev[name].to_list() for name in ("sentence1", "sentence2", "score")] if dev is not None else None
    return network_digest(objective.online, *settings, pairs.digest, json.dumps(scored))


def network_digest(network: torch.nn.Module, *parts: str) -> str:
    """Return the SHA-256 of a network's weights and further strings, 64 hex digits."""
    digest = hashlib.sha256(json.dumps(parts).encode())
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
