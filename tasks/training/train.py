"""Train an encoder on pairs; training resumes from the store's scratch folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bsl.models.encoder.config import EncoderConfig
from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.refs import ENCODER, STATE, CheckpointRef, EmbeddingsRef, PairsRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.corpus.evaluation_sets import ScoredSet
from bsl.tasks.embedding.encoders import load_encoder
from bsl.tasks.figures import Speed, TrainingFigures
from bsl.tasks.rendering.blocks import Charts, Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.device import device_of
from bsl.tasks.stage.sigterm import stop_requested
from bsl.tasks.stage.ui import progress_of, show
from bsl.tasks.training.distributed import MEASURED, train_together
from bsl.tasks.training.worker import TrainingJob, run_job

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsl.models.training.loop import TrainingResult
    from bsl.tasks.stage.run_context import RunContext


@stage(ref=CheckpointRef, version=8, uses_torch=True)
def train(
    context: StageContext,
    pairs: PairsRef,
    start: CheckpointRef | ResolvedModel,
    dev: ScoredSet | None,
    encoder: EncoderConfig,
    config: TrainingConfig,
    teacher: EmbeddingsRef | None = None,
) -> None:
    """Train the online network on pairs of views; save the encoder, the full training state and the log.

    `start` is a pretrained model, or the encoder of an earlier training.
    """
    # Imported here, so that a run with all stages cached does not import torch and transformers.
    from bsl.models.training.snapshots import write_snapshot

    with context.store.own_scratch(context.ref) as scratch, stop_requested() as should_stop:
        job = TrainingJob(
            site=context.site,
            pairs=pairs,
            start=start,
            dev=dev,
            encoder=encoder,
            config=config,
            teacher=teacher,
            work=scratch,
        )
        if context.site.processes > 1:
            train_together(job, should_stop)
        result, trained = run_job(
            job, device=device_of(context.site), should_stop=should_stop, on_progress=progress_of("training, steps")
        )
        together = context.site.processes > 1
        speed = Speed.model_validate_json((scratch / MEASURED).read_bytes()) if together else Speed.of(result)
    trained.save(context.draft.folder / ENCODER)
    write_snapshot(context.draft.folder / STATE, result.state)
    context.draft.write(result.log, "training_log")
    context.draft.note(
        TrainingFigures(
            steps=result.steps,
            start_dev_spearman=result.start_dev,
            best_dev_spearman=result.best_dev,
            best_step=result.best_step,
            finding=result.finding,
            max_length=result.encoder.config.length,
            measured=speed,
        )
    )
    _show(result)


def check_objectives(
    site: RunContext, start: CheckpointRef | ResolvedModel, encoder: EncoderConfig, trainings: Iterable[TrainingConfig]
) -> None:
    """Check that the objectives can train an encoder; this loads it, so call it before hours of other work only.

    Raises:
        TrainingError, EncoderError: An objective cannot train this encoder.
    """
    from bsl.models.runtime.random_state import seeded
    from bsl.models.training.loop import objective_of

    named = start.path if isinstance(start, CheckpointRef) else start.name  # errors name the model, not its digest
    loaded = load_encoder(site.open_store(), start, encoder.model_copy(update={"model": named}))
    with seeded(0):
        for training in trainings:
            objective_of(loaded, training)


def _show(result: TrainingResult) -> None:
    from bsl.tasks.rendering.charts import training_curves  # matplotlib

    evaluations = result.log.filter(pl.col("dev_spearman").is_not_null() | pl.col("uniformity").is_not_null())
    table = evaluations.drop("lr", "momentum", "grad_norm", "dev_spearman").with_columns(
        (100 * evaluations["dev_spearman"]).alias("dev Spearman × 100")
    )
    charts = training_curves({"training": result.log}, most=2)  # the run's page has all
    show(Table.of("Evaluations during the training", table.to_dicts()), Charts(charts))
