"""One training run, by this process alone or by several that share every batch.

Several are started by torchrun, which runs this module: `python -m torch.distributed.run … -m tasks.train_job JOB`.
They leave the finished state in the run's work folder, where the process that started them reads it back.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from models.encoder.config import EncoderConfig
from models.errors import TrainingError
from models.training.config import TrainingConfig
from storage.refs import CheckpointRef, EmbeddingsRef, PairsRef
from storage.weights import ResolvedModel
from tasks.evaluation.dev import dev_set
from tasks.evaluation.sets import ScoredSet
from tasks.pretrained import encoder_folder
from tasks.site import Site
from tasks.stage.machine import cores, device_of, settle_threads
from tasks.stage.stopping import stop_requested

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue
    from transformers import PreTrainedTokenizerBase

    from models.progress import OnProgress
    from models.training.loop import TrainingResult
    from models.training.teacher import Teacher

logger = logging.getLogger(__name__)

JOB, ERROR, MEASURED = "job.json", "error.txt", "measured.json"  # in the work folder
POLL_S = 0.2


class TrainingJob(BaseModel):
    """All that a process needs to know to train."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    site: Site
    pairs: PairsRef
    start: CheckpointRef | ResolvedModel
    dev: ScoredSet | None
    encoder: EncoderConfig
    config: TrainingConfig
    teacher: EmbeddingsRef | None = None
    work: Path
    """Folder for tokens and snapshots."""


def run_job(
    job: TrainingJob,
    *,
    device: str,
    should_stop: Callable[[], bool],
    on_progress: OnProgress | None = None,
) -> tuple[TrainingResult, PreTrainedTokenizerBase]:
    """Train in this process, or read a finished run back."""
    # Imported here: a run whose stages are all cached never pays for torch and transformers.
    from models.encoder.loading import load_encoder
    from models.training.loop import train

    store = job.site.open_store()
    online, tokenizer = load_encoder(encoder_folder(store, job.start), job.encoder)
    result = train(
        store.scan(job.pairs),
        online,
        tokenizer,
        job.config,
        dev=None if job.dev is None else dev_set(job.dev),
        teacher=None if job.teacher is None else _teacher(job, job.teacher),
        work=job.work,
        device=device,
        save_every=job.site.save_every,
        save_minutes=job.site.save_minutes,
        keep=job.site.keep_snapshots,
        should_stop=should_stop,
        on_progress=on_progress,
    )
    return result, tokenizer


def run_in_processes(job: TrainingJob, should_stop: Callable[[], bool]) -> None:
    """Train with `site.processes` processes until the finished state is in the work folder.

    Raises:
        TrainingError: The batch cannot be shared equally, or a process failed or was asked to stop.
    """
    count = job.site.processes
    if job.config.batch_size % count:
        raise TrainingError(
            f"a batch of {job.config.batch_size} pairs cannot be shared equally by {count} processes; set "
            "training.batch_size to a multiple of them, or another number of processes"
        )
    if not job.config.drop_last:
        raise TrainingError(
            f"{count} processes cannot share the smaller last batch of an epoch equally; set training.drop_last to "
            "true, or train in one process"
        )
    job.work.mkdir(parents=True, exist_ok=True)
    for name in (ERROR, MEASURED):
        (job.work / name).unlink(missing_ok=True)
    (job.work / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    running = subprocess.Popen([*launcher, "-m", "tasks.train_job", str(job.work / JOB)])
    try:
        _await(running, should_stop)
    finally:
        running.terminate()  # nothing to a process that has ended; else nobody waits for it any more
    if running.returncode != 0:
        told = job.work / ERROR
        reason = told.read_text(encoding="utf-8") if told.is_file() else "see what it printed above; run again to go on"
        raise TrainingError(f"training in {count} processes ended with exit status {running.returncode}: {reason}")


def _await(running: subprocess.Popen[bytes], should_stop: Callable[[], bool]) -> None:
    asked = False
    while running.poll() is None:
        if should_stop() and not asked:
            running.send_signal(signal.SIGTERM)
            asked = True
        try:
            running.wait(POLL_S)
        except subprocess.TimeoutExpired:
            continue


def measured(result: TrainingResult) -> dict[str, JsonValue]:
    """How fast the steps of this call were."""
    return {
        "pairs_per_s": round(result.pairs_per_s, 2),
        "tokens_per_s": round(result.tokens_per_s, 1),
        "mfu": None if result.mfu is None else round(result.mfu, 4),
    }


def _teacher(job: TrainingJob, teacher: EmbeddingsRef) -> Teacher:
    from models.training.processes import first_alone
    from models.training.teacher import open_teacher

    with first_alone():
        return open_teacher(job.work, teacher.key[:16], job.site.open_store().scan(teacher))


def _work_as_one_of_several(path: Path) -> None:
    """What each process that torchrun starts does."""
    from models.training.processes import is_first, joined

    job = TrainingJob.model_validate_json(path.read_text(encoding="utf-8"))
    threads = job.site.threads or max(1, cores() // job.site.processes)
    settle_threads(job.site.model_copy(update={"threads": threads}))
    with stop_requested() as asked, joined(device_of(job.site)) as device:
        logging.basicConfig(level=logging.INFO if is_first() else logging.WARNING)
        try:
            result, _ = run_job(job, device=device, should_stop=asked, on_progress=_log if is_first() else None)
        except TrainingError as error:
            if is_first():
                (job.work / ERROR).write_text(str(error), encoding="utf-8")
            sys.exit(1)
        if is_first():
            (job.work / MEASURED).write_text(json.dumps(measured(result)), encoding="utf-8")


def _log(done: int, total: int, detail: str) -> None:
    logger.info("training: %d of %d · %s", done, total, detail)


if __name__ == "__main__":
    _work_as_one_of_several(Path(sys.argv[1]))
