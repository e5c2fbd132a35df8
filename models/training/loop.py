"""The training loop: batch → loss → clip → optimizer → target, with evaluation, selection and resumption.

Design:
- every text is tokenised once; a step only slices and pads
- each step's batch, learning rate and momentum are functions of its number, so a snapshot needs no iterators
- on a CPU, same seed and thread count give the same bytes, interrupted or not
"""

from __future__ import annotations

import copy
import logging
import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import polars as pl
import torch

from models.bsl.ema import momentum_at
from models.encoder.transformer import Encoder, autocast
from models.errors import InterruptedRunError, NonFiniteLossError
from models.objectives.registry import build_objective
from models.training.batches import BatchOrder, TokenPairs, count_steps, tokenise_pairs
from models.training.health import Examiner, check_collapse
from models.training.randomness import seeded
from models.training.schedule import learning_rate
from models.training.snapshots import newest_snapshot, save_snapshot
from models.training.state import LiveRun, LogRow, TrainingState, run_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.objectives.base import Objective
    from models.training.config import TrainingConfig
    from models.training.health import DevSet, Evaluation

logger = logging.getLogger(__name__)

LOG_SCHEMA = pl.Schema(
    {
        "step": pl.UInt32(),
        "loss": pl.Float64(),
        "lr": pl.Float64(),
        "momentum": pl.Float64(),
        "grad_norm": pl.Float64(),
        "alignment": pl.Float64(),
        "uniformity": pl.Float64(),
        "std": pl.Float64(),
        "effective_rank": pl.Float64(),
        "dev_spearman": pl.Float64(),
    }
)
# Padded tokens a forward pass of an encoder. Part of the result's last bits, hence constants and not settings.
CPU_TOKENS, GPU_TOKENS = 512, 1 << 20
REPORT_S = 1.0  # seconds between two progress reports


@dataclass(frozen=True)
class TrainingResult:
    """What a finished run gives.

    Attributes:
        encoder: The selected online encoder, in evaluation mode on the CPU.
        log: One row a step (and one for step 0), columns `LOG_SCHEMA`; the same for the same seed.
        steps: Optimizer steps of the run.
        start_dev: Dev Spearman before the first step; None without a dev set.
        best_dev: Dev Spearman of the selected encoder; None without a dev set.
        best_step: The step it comes from.
        pairs_per_s: Pairs trained a second in this call, evaluations left out; 0 if nothing was left to do.
        tokens_per_s: Real tokens of both views a second.
        state: The final snapshot, for the checkpoint artifact.
    """

    encoder: Encoder
    log: pl.DataFrame
    steps: int
    start_dev: float | None
    best_dev: float | None
    best_step: int
    pairs_per_s: float
    tokens_per_s: float
    state: TrainingState


def train(
    pairs: pl.DataFrame,
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    config: TrainingConfig,
    *,
    dev: DevSet | None = None,
    work: Path | None = None,
    device: str | torch.device = "cpu",
    save_every: int = 200,
    keep: int = 2,
    should_stop: Callable[[], bool] | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
    on_eval: Callable[[Evaluation], None] | None = None,
) -> TrainingResult:
    """Train an encoder on pairs of views by an objective; the default is BSL (paper section 3).

    Args:
        pairs: Columns `text_1` and `text_2`, the two views; at least one batch.
        encoder: Where online and target network start; left as it is.
        tokenizer: The encoder's own.
        config: All that decides the result.
        dev: Scored pairs for selection and for seeing a collapse.
        work: Folder for snapshots; a call on a folder with snapshots of this run goes on from the newest.
        device: Where to compute.
        save_every: Steps between snapshots.
        keep: Snapshots kept.
        should_stop: Asked after each step; True saves and raises InterruptedRunError.
        on_progress: Called as (steps done, steps in all, detail), at most once a second.
        on_eval: Called after each evaluation of this call.

    Raises:
        TrainingError: Too few or incomplete pairs, or one of its kinds: CollapseError, NonFiniteLossError,
            InterruptedRunError, ResumeError.
    """
    data = tokenise_pairs(tokenizer, pairs, encoder.config.max_length)
    total = count_steps(len(data), config)
    with seeded(config.seed):
        # Seeded before the predictor is made, which draws its first weights.
        run = _start(copy.deepcopy(encoder), data, config, dev, total, device)
        saved = newest_snapshot(work, run.fingerprint) if work is not None else None
        if saved is not None:
            logger.info("resuming at step %d of %d", saved.step, total)
            run.restore(saved)
        examiner = Examiner(data, dev, tokenizer, encoder.config.max_length, config.seed)
        loop = _Loop(run, data, examiner, config, on_progress, on_eval)
        loop.go(work, save_every, keep, should_stop)
        return loop.result()


class _Loop:
    """One call of `train`."""

    def __init__(
        self,
        run: LiveRun,
        data: TokenPairs,
        examiner: Examiner,
        config: TrainingConfig,
        on_progress: Callable[[int, int, str], None] | None,
        on_eval: Callable[[Evaluation], None] | None,
    ) -> None:
        self.run, self.data, self.examiner, self.config = run, data, examiner, config
        self.on_progress, self.on_eval = on_progress, on_eval
        self.order = BatchOrder(len(data), config)
        self.device = run.bootstrap.online.device
        self.batch_tokens = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        self.eval_every = config.eval_every or max(1, math.ceil(run.total / 10))
        self.pairs_done, self.tokens_done, self.seconds, self.reported = 0, 0, 0.0, 0.0

    def go(self, work: Path | None, save_every: int, keep: int, should_stop: Callable[[], bool] | None) -> None:
        """Run the steps that are left."""
        run = self.run
        if not run.log:
            run.log.append(_row(0))
            self._evaluate()
        while run.step < run.total:
            self._timed_step()
            if run.step % self.eval_every == 0 or run.step == run.total:
                self._evaluate()
            stopping = run.step < run.total and should_stop is not None and should_stop()
            if work is not None and (stopping or run.step % save_every == 0 or run.step == run.total):
                save_snapshot(work, run.snapshot(), keep)
            if stopping:
                raise InterruptedRunError(run.step, run.total, None if work is None else str(work))

    def result(self) -> TrainingResult:
        """The selected encoder and all figures."""
        run, history = self.run, self.run.history()
        encoder = copy.deepcopy(run.bootstrap.online).cpu().eval()
        best = self.config.select == "best" and bool(run.best)
        if best:
            encoder.load_state_dict(run.best)
        return TrainingResult(
            encoder=encoder,
            log=pl.DataFrame(run.log, schema=LOG_SCHEMA),
            steps=run.total,
            start_dev=history[0].dev_spearman,
            best_dev=run.best_dev if best else history[-1].dev_spearman,
            best_step=run.best_step if best else run.total,
            pairs_per_s=self._rate(self.pairs_done),
            tokens_per_s=self._rate(self.tokens_done),
            state=run.snapshot(),
        )

    def _timed_step(self) -> None:
        began = time.perf_counter()
        rows = self.order.rows(self.run.step + 1)
        self._step(rows)
        self.seconds += time.perf_counter() - began
        lengths = self.data.tokens.lengths_of
        self.pairs_done += len(rows)
        self.tokens_done += int(lengths(self.data.view_1[rows]).sum() + lengths(self.data.view_2[rows]).sum())
        self._report()

    def _step(self, rows: NDArray[np.int64]) -> None:
        run, config, step = self.run, self.config, self.run.step + 1
        rate, momentum = learning_rate(step, run.total, config), momentum_at(step, run.total, config.objective)
        for group in run.optimizer.param_groups:
            group["lr"] = rate
        with autocast(self.device, config.precision == "bf16"):
            loss = run.bootstrap(self.data.tokens, self.data.view_1[rows], self.data.view_2[rows], self.batch_tokens)
        value = _finite(loss, "loss", step, rows)
        run.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(run.bootstrap.learning_parameters(), config.clip)
        grad_norm = _finite(norm, "gradient norm", step, rows)
        run.optimizer.step()
        if momentum is not None:
            run.bootstrap.follow(momentum)
        run.step = step
        run.log.append(_row(step, loss=value, lr=rate, momentum=momentum, grad_norm=grad_norm))

    def _evaluate(self) -> None:
        run = self.run
        seen = self.examiner.examine(run.bootstrap.online, run.step, bf16=self.config.precision == "bf16")
        run.log[-1].update(asdict(seen))
        if run.step > 0:
            run.keep_best(seen)
        if self.on_eval is not None:
            self.on_eval(seen)
        if self.config.collapse is not None:
            check_collapse(run.history(), self.config.collapse, final=run.step == run.total)

    def _report(self) -> None:
        now = time.monotonic()
        if self.on_progress is None or (now - self.reported < REPORT_S and self.run.step < self.run.total):
            return
        self.reported = now
        dev = "" if self.run.best_dev is None else f" · best dev {100 * self.run.best_dev:.1f}"
        detail = f"loss {self.run.log[-1]['loss']:.3f}{dev} · {self._rate(self.pairs_done):.0f} pairs/s"
        self.on_progress(self.run.step, self.run.total, detail)

    def _rate(self, count: int) -> float:
        return count / self.seconds if self.seconds > 0 else 0.0


def _start(
    online: Encoder,
    data: TokenPairs,
    config: TrainingConfig,
    dev: DevSet | None,
    total: int,
    device: str | torch.device,
) -> LiveRun:
    bootstrap = build_objective(online, config.objective).to(device)
    fingerprint = run_fingerprint(config, bootstrap, data, dev)
    return LiveRun(fingerprint, total, bootstrap, _optimizer(bootstrap, config))


def _optimizer(bootstrap: Objective, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam or AdamW, fused; weight decay on matrices only, as the released code groups parameters."""
    learning = bootstrap.learning_parameters()
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=config.lr, eps=config.eps, fused=True)


def _finite(value: torch.Tensor, quantity: str, step: int, rows: NDArray[np.int64]) -> float:
    number = float(value.detach())
    if not math.isfinite(number):
        raise NonFiniteLossError(step, quantity, number, rows.tolist())
    return number


def _row(step: int, **values: float | None) -> LogRow:
    return dict.fromkeys(LOG_SCHEMA) | {"step": step} | values
