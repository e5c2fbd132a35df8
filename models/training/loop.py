"""The training loop: batch → loss → clip → optimizer → target, with evaluation, selection and resumption.

`run_steps` is the loop of all training, also of pre-training; `train` uses it to learn from pairs of views.

Design:
- every text is tokenised once; a step only slices and pads
- each step's batch, learning rate and momentum depend on its number alone, so a snapshot needs no iterators
- on a CPU, same seed and thread count give the same bytes, interrupted or not
"""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from bsl.models.encoder.cnn import with_convolutions
from bsl.models.errors import InterruptedRunError, NonFiniteLossError
from bsl.models.runtime.precision import with_resolved_precision
from bsl.models.runtime.random_state import seeded
from bsl.models.training.activations import compute_again_if_large
from bsl.models.training.batches import BatchOrder, count_steps, permutation, steps_per_epoch
from bsl.models.training.dev_evaluation import DevEvaluator, divergence_remedy, finding_of
from bsl.models.training.distributed import any_process, from_first, is_first, local_rank_zero_first, seed_step
from bsl.models.training.metrics import DeferredMetrics, Throughput, log_row
from bsl.models.training.optimizer import make_optimizer, take_step
from bsl.models.training.snapshots import (
    Execution,
    Saving,
    Snapshot,
    TrainingState,
    copied,
    newest_snapshot,
    run_fingerprint,
)
from bsl.models.training.static_steps import compute_for
from bsl.models.training.token_cache import TokenCache, open_token_cache
from bsl.storage.artifacts.schemas import TRAINING_LOG

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.objectives.columns import Column
    from bsl.models.objectives.objective import Objective
    from bsl.models.training.config import TrainingConfig
    from bsl.models.training.token_cache import TeacherVectors

logger = logging.getLogger(__name__)

SAVE_EVERY = 200  # steps between snapshots
REPORT_S = 1.0  # seconds between two progress reports
TEACHER_SAMPLE = 4096  # sample of pairs for `Objective.fit_to_teacher`


@dataclass(frozen=True)
class TrainingResult:
    """Result of a finished training run.

    Attributes:
        encoder: The selected online encoder, in evaluation mode on the CPU.
        log: One row per step (and one for step 0), columns `TRAINING_LOG`; the same for the same seed.
        steps: Optimizer steps of the run.
        start_dev: Dev Spearman before the first step; None without a dev set.
        best_dev: Dev Spearman of the selected encoder; None without a dev set.
        best_step: Step of the selected encoder; 0 is the original encoder.
        finding: Why training was stopped as harmful; the encoder is then the best so far, the original included. Empty
            otherwise.
        throughput: Speed of this call's steps, without evaluations.
        state: The final snapshot, for the checkpoint artifact.
    """

    encoder: Encoder
    log: pl.DataFrame
    steps: int
    start_dev: float | None
    best_dev: float | None
    best_step: int
    finding: str
    throughput: Throughput
    state: Snapshot


def train(
    pairs: pl.DataFrame | pl.LazyFrame,
    encoder: SentenceEncoder,
    config: TrainingConfig,
    *,
    dev: pl.DataFrame | None = None,
    teacher: TeacherVectors | None = None,
    execution: Execution | None = None,
) -> TrainingResult:
    """Train an encoder on pairs of views by an objective; the default is BSL (paper section 3).

    Args:
        pairs: Columns `text_1` and `text_2`, the two views, and the columns that the objective needs; at least one
            batch. A lazy frame is read in chunks, so there may be more pairs than fit into memory.
        encoder: Its network initialises online and target network, and is not changed.
        config: All settings that decide the result; precision `auto` is resolved for the device.
        dev: Scored pairs for selecting a step and detecting a collapse: columns `sentence1`, `sentence2` and `score` of
            any scale.
        teacher: Vectors by the pairs' `sentence_id`, for objectives that learn from them.
        execution: Device, snapshots, stop requests and progress reports; None trains on the CPU without any.

    Raises:
        TrainingError: Too few or incomplete pairs, a batch that the processes cannot share equally, or one of the
            subclasses: NonFiniteLossError, InterruptedRunError, ResumeError (the work folder has snapshots of another
            run or of an unknown format).
        OSError: A snapshot cannot be read or written.
    """
    execution = execution or Execution()
    work, device = execution.work, execution.device
    config = with_resolved_precision(config, lambda: str(device))
    with contextlib.ExitStack() as stack:
        folder = work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with local_rank_zero_first():
            order: frozenset[Column] = frozenset({"group"} if config.order == "groups" else ())
            needs = config.objective.needs | order
            data = open_token_cache(folder, pairs.lazy(), encoder, needs, teacher, config.objective.nullable)
        total = count_steps(len(data), config)
        stack.enter_context(seeded(config.seed))
        # Seed before making convolutions and predictor, whose initial weights are random.
        run = _start(encoder, data, config, dev, total, device)
        # Only the first process reads: other machines have no snapshots, and damaged ones must be removed only once.
        saved = from_first(lambda: None if work is None else newest_snapshot(work, run.fingerprint))
        if saved is not None:
            logger.info("resuming at step %d of %d", saved.step, total)
            run.restore(saved)
        evaluator = DevEvaluator(data, dev, encoder, config)
        loop = _Loop(run, data, evaluator, config, execution)
        try:
            loop.go(Saving(work, execution, SAVE_EVERY) if work is not None and is_first() else None)
        except FloatingPointError as error:
            raise _non_finite(error, loop.order, pairs.lazy(), work, divergence_remedy(config)) from error
        return loop.result()


class SteppedRun(Protocol):
    """State of a run, as far as `run_steps` needs it.

    Attributes:
        step: Optimizer steps done.
    """

    step: int

    @property
    def over(self) -> bool:
        """Whether the run is finished."""


def run_steps(
    run: SteppedRun,
    take: Callable[[], None],
    snapshot: Callable[[], Snapshot],
    saving: Saving | None,
    should_stop: Callable[[], bool] | None = None,
) -> bool:
    """Take the remaining steps, and save a snapshot when one is due and at the end.

    Args:
        run: Each step changes it.
        take: Takes one step, with its evaluation if one is due.
        snapshot: Returns a copy of the run.
        saving: When and where to save; None saves nothing.
        should_stop: Called after each step; True from any process saves and ends the loop.

    Returns:
        Whether the run was stopped before its last step.
    """
    while not run.over:
        take()
        stopping = any_process(should_stop is not None and should_stop()) and not run.over
        if saving is not None and (stopping or run.over or saving.is_due(run.step)):
            saving.save(snapshot())
        if stopping:
            return True
    return False


class _Loop:
    """One call of `train`."""

    def __init__(
        self,
        run: TrainingState,
        data: TokenCache,
        evaluator: DevEvaluator,
        config: TrainingConfig,
        execution: Execution,
    ) -> None:
        self.run, self.data, self.evaluator, self.config, self.execution = run, data, evaluator, config, execution
        self.order = BatchOrder(len(data), config, data.lengths_of, data.column("group"))
        self.eval_every = _eval_every(config, len(data), run.total)
        self.throughput, self.reported = Throughput(run.objective), 0.0
        self.metrics = DeferredMetrics(run.objective.online.device)
        compute_again_if_large(run.objective, data, config.batch_size)
        self.compute = compute_for(run, config, data, self.order, static=execution.static_shapes)

    def go(self, saving: Saving | None) -> None:
        """Run the remaining steps."""
        run = self.run
        if not run.log:
            run.log.append(log_row(0))
            self._evaluate()
        if run_steps(run, self._step, self._snapshot, saving, self.execution.should_stop):
            raise InterruptedRunError(run.step, run.total, None if saving is None else str(saving.folder))

    def result(self) -> TrainingResult:
        """Return the selected encoder and all metrics."""
        run, history = self.run, self.run.history()
        encoder = copy.deepcopy(run.objective.online).cpu().eval()
        best = bool(run.best) and (self.config.select != "last" or bool(run.finding))
        if best:
            encoder.load_state_dict(run.best)
        return TrainingResult(
            encoder=encoder,
            log=pl.DataFrame(run.log, schema=TRAINING_LOG),
            steps=run.step,
            start_dev=history[0].dev_spearman,
            best_dev=run.best_dev if best else history[-1].dev_spearman,
            best_step=run.best_step if best else run.step,
            finding=run.finding,
            throughput=self.throughput,
            state=run.snapshot(),
        )

    def _step(self) -> None:
        run = self.run
        self.throughput.start()
        seed_step(self.config.seed, run.step + 1)
        batch = self.data.take(self.order.rows(run.step + 1))
        figures = take_step(run, batch, self.config, self.compute)
        self.metrics.add(run.log[-1], *figures)
        self.throughput.add(batch)
        self._report()
        if run.step % self.eval_every == 0 or run.step == run.total:
            self._evaluate()

    def _snapshot(self) -> Snapshot:
        self._pause()
        return self.run.snapshot()

    def _pause(self) -> None:
        """Stop the clock and read the metrics that are still on the device."""
        self.throughput.stop()
        self.metrics.read()

    def _evaluate(self) -> None:
        self._pause()
        run, bf16 = self.run, self.config.precision == "bf16"
        evaluation = from_first(lambda: self.evaluator.evaluate(run.objective.online, run.step, bf16=bf16))
        run.log[-1].update(asdict(evaluation))
        if run.step > 0 or self.config.select == "best-or-start":
            run.keep_best(evaluation)
        if finding := finding_of(run.history(), self.config, final=run.step == run.total):
            run.stop_training(finding)
            logger.warning("stopping training and using the best checkpoint so far: %s", finding)

    def _report(self) -> None:
        now, on_progress = time.monotonic(), self.execution.on_progress
        if on_progress is None or (now - self.reported < REPORT_S and self.run.step < self.run.total):
            return
        self.reported = now
        self._pause()
        dev = "" if self.run.best_dev is None else f" · best dev {100 * self.run.best_dev:.1f}"
        speed, mfu = self.throughput, self.throughput.mfu
        rates = f"{speed.pairs_per_s:,.0f} pairs/s · {speed.tokens_per_s:,.0f} tokens/s"
        used = "" if mfu is None else f" · MFU {mfu:.1%}"
        on_progress(self.run.step, self.run.total, f"loss {self.run.log[-1]['loss']:.3f}{dev} · {rates}{used}")


def objective_of(encoder: SentenceEncoder, config: TrainingConfig) -> Objective:
    """Return the networks and the loss of a training; the online network is a copy of the encoder's.

    Raises:
        TrainingError, EncoderError: The objective cannot train this encoder.
    """
    online = with_convolutions(copy.deepcopy(encoder.network))
    return config.objective.build(online, encoder.own_tokenizer)


def _start(
    encoder: SentenceEncoder,
    data: TokenCache,
    config: TrainingConfig,
    dev: pl.DataFrame | None,
    total: int,
    device: str | torch.device,
) -> TrainingState:
    objective = objective_of(encoder, config).to(device)
    if data.teacher is not None:
        sample = data.take(permutation(len(data), config.seed, 0)[:TEACHER_SAMPLE])
        objective.fit_to_teacher(sample, data.teacher.vectors)
        objective.to(device)
    fingerprint = run_fingerprint(config, objective, data, dev)
    first = copied(objective.online.state_dict()) if config.collapse else {}
    return TrainingState(fingerprint, total, objective, make_optimizer(objective, config), start=first)


def _eval_every(config: TrainingConfig, pairs: int, total: int) -> int:
    if config.eval_every == "epoch":
        return steps_per_epoch(pairs, config)
    if config.eval_every == "tenth":
        return max(1, total // 10)
    return config.eval_every or max(1, math.ceil(total / 10))


def _non_finite(
    error: FloatingPointError,
    order: BatchOrder,
    pairs: pl.LazyFrame,
    work: Path | None,
    remedy: str,
) -> NonFiniteLossError:
    """Return the error that names the batch, and save the batch for debugging."""
    step, quantity, value = error.args
    rows = order.rows(step)
    path = work / f"non-finite-step-{step:08d}.parquet" if work is not None else None
    if path is not None and is_first():
        batch = pairs.with_row_index("row").filter(pl.col("row").is_in(rows.tolist())).collect()
        batch.write_parquet(path)
    return NonFiniteLossError(step, quantity, value, rows.tolist(), None if path is None else str(path), remedy)
