"""Device, snapshots and progress of a run; settings that decide the result are in `TrainingConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import torch

    from models.runtime.progress import OnProgress


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
