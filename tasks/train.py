"""Pairs to a checkpoint: BSL training, resumable from the store's scratch folder."""

from typing import TYPE_CHECKING

import polars as pl

from models.encoder.config import EncoderConfig
from models.report.curve import training_curve
from models.training.config import TrainingConfig
from storage.refs import CheckpointRef, PairsRef
from storage.weights import ResolvedModel
from tasks.cached import Work, stage
from tasks.machine import device_of, settle_threads
from tasks.resolve import ScoredSet, read_scored_set
from tasks.show import progress_of, show_image, show_table

if TYPE_CHECKING:
    from pydantic import JsonValue

    from models.training.health import DevSet
    from models.training.loop import TrainingResult

STATE = "state"
ENCODER = "encoder"


@stage(
    ref=CheckpointRef,
    version=1,
)
def train(
    work: Work,
    pairs: PairsRef,
    start: ResolvedModel,
    dev: ScoredSet | None,
    encoder: EncoderConfig,
    config: TrainingConfig,
) -> None:
    """Train the online network on pairs of views; keep the encoder, the full state and the log."""
    # Imported here: a run whose stages are all cached never pays for torch and transformers.
    from models.encoder.export import export_sentence_transformers
    from models.encoder.transformer import load_encoder
    from models.training.loop import train as train_encoder
    from models.training.snapshots import write_state

    settle_threads(work.site)
    online, tokenizer = load_encoder(start.folder, encoder)
    result = train_encoder(
        work.store.scan(pairs).select("text_1", "text_2").collect(),
        online,
        tokenizer,
        config,
        dev=None if dev is None else _dev_set(dev),
        work=work.store.scratch(work.ref),
        device=device_of(work.site),
        save_every=work.site.save_every,
        on_progress=progress_of("training"),
    )
    export_sentence_transformers(result.encoder, tokenizer, work.draft.folder / ENCODER)
    write_state(work.draft.folder / STATE, result.state)
    work.draft.write(result.log, "training_log")
    work.draft.note(_figures(result))
    _show(work, result)


def _dev_set(dev: ScoredSet) -> "DevSet":
    from models.training.health import DevSet

    rows = read_scored_set(dev)
    return DevSet(dev.name, rows["sentence1"].to_list(), rows["sentence2"].to_list(), rows["score"].to_list())


def _figures(result: "TrainingResult") -> "dict[str, JsonValue]":
    return {
        "steps": result.steps,
        "start_dev_spearman": result.start_dev,
        "best_dev_spearman": result.best_dev,
        "best_step": result.best_step,
        # Apart from the rest, which is the same for equal runs.
        "measured": {"pairs_per_s": round(result.pairs_per_s, 2), "tokens_per_s": round(result.tokens_per_s, 1)},
    }


def _show(work: Work, result: "TrainingResult") -> None:
    key = work.ref.key[:12]
    show_image("training-curve", training_curve(result.log, f"checkpoint {key}"), f"Training of checkpoint {key}")
    evaluated = result.log.filter(pl.col("dev_spearman").is_not_null() | pl.col("uniformity").is_not_null())
    show_table("training-log", evaluated.to_dicts(), f"Evaluations while training checkpoint {key}")
