"""Run a training in this process, alone or as one of several (`tasks.training.distributed`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from models.encoder.config import EncoderConfig
from models.training.config import TrainingConfig
from storage.artifacts.refs import CheckpointRef, EmbeddingsRef, PairsRef
from storage.record import Record
from storage.sources.model_sources import ResolvedModel
from tasks.corpus.evaluation_sets import ScoredSet, read_scored_set
from tasks.embedding.encoders import encoder_folder
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from models.encoder.sentence_encoder import SentenceEncoder
    from models.runtime.progress import OnProgress
    from models.training.loop import TrainingResult
    from models.training.token_cache import TeacherVectors


class TrainingJob(Record):
    """Arguments of a training process."""

    site: RunContext
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
) -> tuple[TrainingResult, SentenceEncoder]:
    """Train in this process, or read a finished run back; return the result and the encoder."""
    # Imported here, so that a run with all stages cached does not import torch and transformers.
    from models.encoder.sentence_encoder import SentenceEncoder
    from models.training.distributed import is_first
    from models.training.loop import train
    from models.training.snapshots import Execution

    store = job.site.open_store()
    start = SentenceEncoder.load(encoder_folder(store, job.start), job.encoder)
    result = train(
        store.scan(job.pairs),
        start,
        job.config,
        dev=read_scored_set(job.dev) if job.dev is not None and is_first() else None,  # the first process evaluates
        teacher=None if job.teacher is None else _teacher(job, job.teacher),
        execution=Execution(
            work=job.work,
            device=device,
            save_every=job.site.save_every,
            save_minutes=job.site.save_minutes,
            keep=job.site.keep_snapshots,
            should_stop=should_stop,
            on_progress=on_progress,
        ),
    )
    return result, SentenceEncoder(result.encoder, start.tokenizer)  # drops the start's prompts, as untrained


def measured(result: TrainingResult) -> dict[str, JsonValue]:
    """Return the speed of this call's steps."""
    speed = result.throughput
    return {
        "pairs_per_s": round(speed.pairs_per_s, 2),
        "tokens_per_s": round(speed.tokens_per_s, 1),
        "mfu": None if speed.mfu is None else round(speed.mfu, 4),
    }


def _teacher(job: TrainingJob, teacher: EmbeddingsRef) -> TeacherVectors:
    from models.training.distributed import first_here_alone
    from models.training.token_cache import open_teacher

    with first_here_alone():
        return open_teacher(job.work, teacher.key[:16], job.site.open_store().scan(teacher))
