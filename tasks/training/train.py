"""Train an encoder on pairs; training resumes from the store's scratch folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from models.encoder.config import EncoderConfig
from models.training.config import TrainingConfig
from storage.artifacts.refs import ENCODER, STATE, CheckpointRef, EmbeddingsRef, PairsRef
from storage.sources.model_sources import ResolvedModel
from tasks.corpus.evaluation_sets import ScoredSet
from tasks.stage.cached import StageContext, stage
from tasks.stage.device import device_of, limit_threads
from tasks.stage.sigterm import stop_requested
from tasks.stage.ui import progress_of, show_chart, show_table
from tasks.training.distributed import MEASURED, train_together
from tasks.training.worker import TrainingJob, measured, run_job

if TYPE_CHECKING:
    from pydantic import JsonValue

    from models.training.loop import TrainingResult


@stage(ref=CheckpointRef, version=8)
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
    from models.training.snapshots import write_snapshot

    limit_threads(context.site)
    scratch = context.store.scratch(context.ref)
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
    with stop_requested() as should_stop:
        if context.site.processes > 1:
            train_together(job, should_stop)
        result, trained = run_job(
            job, device=device_of(context.site), should_stop=should_stop, on_progress=progress_of("training, steps")
        )
    speed = json.loads((scratch / MEASURED).read_text()) if context.site.processes > 1 else measured(result)
    trained.save(context.draft.folder / ENCODER)
    write_snapshot(context.draft.folder / STATE, result.state)
    context.draft.write(result.log, "training_log")
    context.draft.note(_figures(result, speed))
    _show(context, result)


def _figures(result: TrainingResult, speed: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "steps": result.steps,
        "start_dev_spearman": result.start_dev,
        "best_dev_spearman": result.best_dev,
        "best_step": result.best_step,
        "finding": result.finding,
        "max_length": result.encoder.config.length,
        "measured": speed,  # separate, since it differs between equal runs
    }


def _show(context: StageContext, result: TrainingResult) -> None:
    key = context.ref.key[:12]
    from tasks.rendering.charts import training_curves  # matplotlib

    for chart in training_curves({"training": result.log}, most=2):  # the run's page has all
        show_chart(chart.name, chart.standalone(), f"Training of checkpoint {key}: {chart.label}")
    evaluations = result.log.filter(pl.col("dev_spearman").is_not_null() | pl.col("uniformity").is_not_null())
    table = evaluations.drop("lr", "momentum", "grad_norm", "dev_spearman").with_columns(
        (100 * evaluations["dev_spearman"]).alias("dev Spearman × 100")
    )
    show_table(table.to_dicts(), f"Evaluations during the training of checkpoint {key}")
