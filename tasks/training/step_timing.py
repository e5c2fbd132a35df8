"""How long a step takes: a few steps of a training or a fit, timed, so that a budget in minutes becomes one in steps.

Design choices
- The measurement is an artifact, so that a second run with the same budget takes as many steps and finds what the first
  one trained. It is what the machine that measured first could do; a budget in steps is the same on every machine.
- The median step counts, so that neither the first steps nor another process's moment decides.
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
WARM, TIMED = 2, 8  # steps before the clock counts, and those that it counts
ENOUGH_S: Final = 20.0  # after which one counted step is enough


class _TimedError(Exception):
    """The clock has seen enough; unwinds a training that is not to be finished."""


class _Clock:
    """Called after each step, where a training asks whether to stop."""

    def __init__(self, wait: Callable[[], None] = lambda: None) -> None:
        """Start the clock.

        Args:
            wait: returns once the device has done the steps that are queued on it.
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
        """Seconds of each step that counts; all that there were, if there were no more than the first ones."""
        seconds = [after - before for before, after in pairwise(self.stamps)]
        return seconds[WARM:] or seconds


@stage(ref=PaceRef, version=2)
def pace_training(
    work: StageContext,
    pairs: PairsRef,
    start: CheckpointRef | ResolvedModel,
    encoder: EncoderConfig,
    config: TrainingConfig,
    device: str,  # noqa: ARG001 - what the seconds are of, in the key
    teacher: EmbeddingsRef | None = None,
) -> None:
    """Time the first steps of a training with its real batches; nothing of it is kept.

    Raises:
        TrainingError: it cannot begin.
    """
    import torch

    from models.runtime.device import wait

    limit_threads(work.site)
    place = device_of(work.site)
    clock = _Clock(partial(wait, torch.device(place)))
    with tempfile.TemporaryDirectory(dir=work.draft.folder) as scratch:
        job = TrainingJob(
            site=work.site,
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
    _publish(work, clock)


@stage(ref=PaceRef, version=1)
def pace_fit(work: StageContext, embeddings: EmbeddingsRef, config: TransformConfig, device: str) -> None:  # noqa: ARG001
    """Time the first steps of a transform that takes some.

    Raises:
        EvaluationError: nothing can be learnt from the vectors under these settings.
    """
    import torch

    from models.transforms.registry import fitted_transform
    from models.transforms.transform import Fitting

    limit_threads(work.site)
    vectors_ND = torch.tensor(work.store.scan(embeddings).collect()["embedding"].to_numpy())
    clock = _Clock()
    with suppress(_TimedError):
        fitted_transform(vectors_ND, config, Fitting(should_stop=clock))
    _publish(work, clock)


def seconds_a_step(store: Store, pace: PaceRef) -> float:
    """What was measured."""
    seconds = store.manifest(pace).figures[SECONDS]
    assert isinstance(seconds, float)
    return seconds


def affordable(seconds: float, a_step: float) -> int:
    """Steps that a budget buys, to two digits: a budget in minutes is no more exact.

    Args:
        seconds: the budget.
        a_step: seconds of a step.
    """
    steps = max(1, int(seconds / a_step))
    digits: int = 10 ** max(0, len(str(steps)) - 2)
    return steps // digits * digits


def _publish(work: StageContext, clock: _Clock) -> None:
    counted = clock.counted
    median = sorted(counted)[len(counted) // 2]
    (work.draft.folder / FILE).write_text(json.dumps(counted), encoding="utf-8")
    work.draft.note({SECONDS: median, "steps": len(counted)})
