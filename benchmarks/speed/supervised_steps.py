"""Steps on annotated pairs for systems/: common settings, and steps of sentence-transformers' losses."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
import torch

from benchmarks.speed.stepping import SEED, Step, batches, plain_step, sentence_transformer, training
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.config import AnyObjective
from bsl.models.training.config import TrainingConfig

LENGTH, ROWS = 64, 32


def annotated(pairs: pl.DataFrame) -> pl.DataFrame:
    """Derive label, score and group from row numbers where they are missing: three consecutive rows form a group."""
    row = pl.int_range(pl.len())
    made = {
        "label": (row % 3).cast(pl.Int8),
        "score": (row % 6 / 5).cast(pl.Float32),
        "group": (row // 3).cast(pl.UInt64),
    }
    full = [name for name in made if name in pairs.columns and pairs[name].null_count() == 0]
    return pairs.with_columns(**{name: value for name, value in made.items() if name not in full})


def encoder_of(folder: Path) -> EncoderConfig:
    """Return the settings of a folder's encoder with mean pooling."""
    return EncoderConfig(model=str(folder), max_length=LENGTH)


def config_of(objective: AnyObjective) -> TrainingConfig:
    """Return equal settings for both sides; they leave the rows of a group in one batch."""
    return training(objective).model_copy(update={"batch_size": ROWS, "order": "given"})


def sentence_transformers_step(
    encoder: EncoderConfig, pairs: pl.DataFrame, config: TrainingConfig, loss: str, column: str, **options: int
) -> Step:
    """Return a step with a loss of sentence-transformers, with its own tokenisation and padding.

    Args:
        encoder: Encoder of both sides.
        pairs: Pairs with `column`.
        config: Settings of the product's step.
        loss: A class of `sentence_transformers.losses`.
        column: Column of the targets.
        options: Further arguments of the class.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raised by the library's own imports
        from sentence_transformers.sentence_transformer import losses

        model = sentence_transformer(encoder)
    torch.manual_seed(SEED)
    network, frames = getattr(losses, loss)(model, **options), batches(pairs, config)

    def value() -> torch.Tensor:
        frame = next(frames)
        features = [model.preprocess(frame[side].to_list()) for side in ("text_1", "text_2")]
        result: torch.Tensor = network(features, torch.tensor(frame[column].to_list()))
        return result

    return plain_step(list(network.parameters()), value)
