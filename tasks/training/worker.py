"""Run a training in this process, alone or as one of several (`bsl.tasks.training.distributed`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bsl.models.encoder.config import EncoderConfig
from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.refs import CheckpointRef, EmbeddingsRef, PairsRef
from bsl.storage.record import Record
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.corpus.evaluation_sets import ScoredSet, read_scored_set
from bsl.tasks.embedding.encoders import load_encoder
from bsl.tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.runtime.progress import OnProgress
    from bsl.models.training.loop import TrainingResult
    from bsl.models.training.token_cache import TeacherVectors


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
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.training.distributed import is_first
    from bsl.models.training.loop import train

    store = job.site.open_store()
    start = load_encoder(store, job.start, job.encoder)
    result = train(
        store.scan(job.pairs),
        start,
        job.config,
        dev=read_scored_set(job.dev) if job.dev is not None and is_first() else None,  # the first process evaluates
        teacher=None if job.teacher is None else _teacher(job, job.teacher),
        execution=replace(
            job.site.execution(job.work), device=device, should_stop=should_stop, on_progress=on_progress
        ),
    )
    return result, SentenceEncoder(result.encoder, start.own_tokenizer)  # drops the start's prompts, as untrained


def _teacher(job: TrainingJob, teacher: EmbeddingsRef) -> TeacherVectors:
    from bsl.models.training.distributed import local_rank_zero_first
    from bsl.models.training.token_cache import open_teacher

    with local_rank_zero_first():
        return open_teacher(job.work, teacher.key[:16], job.site.open_store().scan(teacher))
