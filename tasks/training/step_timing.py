"""Time a few steps of a training or a fit, to convert a budget in minutes to a budget in steps.

Design choices
- The measurement is an artifact, so that a second run with the same budget takes the same number of steps and finds the
  first one's checkpoint. It depends on the first machine; a budget in steps is the same on every machine.
- The result is the median step, so that the first steps and short loads by other processes do not count.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from models.encoder.config import EncoderConfig
from models.training.config import TrainingConfig
from models.transforms.config import TransformConfig
from storage.artifacts.refs import CheckpointRef, EmbeddingsRef, PaceRef, PairsRef
from storage.sources.model_sources import ResolvedModel
from tasks.stage.cached import StageContext, stage
from tasks.stage.device import device_of, limit_threads
from tasks.training.worker import TrainingJob, run_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.artifacts.store import Store

FILE: Final = "pace.json"
SECONDS: Final = "seconds_a_step"
WARM, TIMED = 2, 8  # warm-up steps, and timed steps
ENOUGH_S: Final = 20.0  # seconds after which one timed step is enough


class _TimedError(Exception):
    """Raised when the timing is complete, to end the unfinished training."""


class _Clock:
    """Step timer, passed to a training as `should_stop`, which is called after each step."""

    def __init__(self, wait: Callable[[], None] = lambda: None) -> None:
        """Start the clock.

        Args:
            wait: Waits for the steps queued on the device.
        """
        self._wait = wait
        self.stamps = [time.perf_counter()]

    def __call__(self) -> bool:
        self._wait()
        self.stamps.append(time.perf_counter())
        steps, seconds = len(self.stamps) - 1, self.stamps[-1] - self.stamps[0]
        if steps >= WARM + TIMED or (steps > WARM and seconds > ENOUGH_S):
            raise _TimedError
        return False

    @property
    def counted(self) -> list[float]:
        """Seconds of each timed step; of all steps if there were only warm-up steps."""
        seconds = [after - before for before, after in pairwise(self.stamps)]
        return seconds[WARM:] or seconds


@stage(ref=PaceRef, version=2)
def pace_training(
    context: StageContext,
    pairs: PairsRef,
    start: CheckpointRef | ResolvedModel,
    encoder: EncoderConfig,
    config: TrainingConfig,
    device: str,  # noqa: ARG001 - in the key, since the seconds depend on it
    teacher: EmbeddingsRef | None = None,
) -> None:
    """Time the first steps of a training with its real batches; the trained weights are discarded.

    Raises:
        TrainingError: The training cannot start.
    """
    import torch

    from models.runtime.device import wait

    limit_threads(context.site)
    place = device_of(context.site)
    clock = _Clock(partial(wait, torch.device(place)))
    with tempfile.TemporaryDirectory(dir=context.draft.folder) as scratch:
        job = TrainingJob(
            site=context.site,
            pairs=pairs,
            start=start,
            dev=None,
            encoder=encoder,
            config=config.model_copy(update={"max_steps": WARM + TIMED, "eval_every": WARM + TIMED}),
            teacher=teacher,
            work=Path(scratch),
        )
        with suppress(_TimedError):
            run_job(job, device=place, should_stop=clock)
    _publish(context, clock)


@stage(ref=PaceRef, version=1)
def pace_fit(context: StageContext, embeddings: EmbeddingsRef, config: TransformConfig, device: str) -> None:  # noqa: ARG001
    """Time the first steps of fitting an iterative transform.

    Raises:
        EvaluationError: The transform cannot be fitted to these vectors with these settings.
    """
    import torch

    from models.training.snapshots import Execution
    from models.transforms.registry import fitted_transform

    limit_threads(context.site)
    vectors_ND = torch.tensor(context.store.scan(embeddings).collect()["embedding"].to_numpy())
    clock = _Clock()
    with suppress(_TimedError):
        fitted_transform(vectors_ND, config, Execution(should_stop=clock))
    _publish(context, clock)


def seconds_a_step(store: Store, pace: PaceRef) -> float:
    """Return the measured seconds of a step."""
    seconds = store.manifest(pace).figures[SECONDS]
    assert isinstance(seconds, float)
    return seconds


def affordable(seconds: float, a_step: float) -> int:
    """Return the number of steps in a time budget, rounded down to two digits, the precision of such a budget."""
    steps = max(1, int(seconds / a_step))
    digits: int = 10 ** max(0, len(str(steps)) - 2)
    return steps // digits * digits


def _publish(context: StageContext, clock: _Clock) -> None:
    counted = clock.counted
    median = sorted(counted)[len(counted) // 2]
    (context.draft.folder / FILE).write_text(json.dumps(counted), encoding="utf-8")
    context.draft.note({SECONDS: median, "steps": len(counted)})
