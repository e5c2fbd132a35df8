"""Steps on annotated pairs for tests/bench/systems: settings of both sides, and sentence-transformers' of one loss."""

import warnings
from pathlib import Path

import polars as pl
import torch

from models.encoder.config import EncoderConfig
from models.objectives.config import AnyObjective
from models.training.config import TrainingConfig
from tests.bench.stepping import SEED, Step, batches, plain_step, sentence_transformer, training

LENGTH, ROWS = 64, 32


def annotated(pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs with label, score and group, made up by row where they are missing: three rows of a group in a row."""
    row = pl.int_range(pl.len())
    made = {
        "label": (row % 3).cast(pl.Int8),
        "score": (row % 6 / 5).cast(pl.Float32),
        "group": (row // 3).cast(pl.UInt64),
    }
    full = [name for name in made if name in pairs.columns and pairs[name].null_count() == 0]
    return pairs.with_columns(**{name: value for name, value in made.items() if name not in full})


def encoder_of(folder: Path) -> EncoderConfig:
    """The encoder of a folder, mean-pooled."""
    return EncoderConfig(model=str(folder), max_length=LENGTH)


def config_of(objective: AnyObjective) -> TrainingConfig:
    """Equal settings for both sides, which keep rows of a group in one batch."""
    return training(objective).model_copy(update={"batch_size": ROWS, "order": "given"})


def sentence_transformers_step(
    encoder: EncoderConfig, pairs: pl.DataFrame, config: TrainingConfig, loss: str, column: str, **options: int
) -> Step:
    """A step of sentence-transformers' loss of that name, with its own tokenisation and padding.

    Args:
        encoder: Both sides'.
        pairs: With `column`.
        config: Of the product's step.
        loss: A class of `sentence_transformers.losses`.
        column: What the loss learns of a pair.
        options: Further arguments of the class.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        from sentence_transformers.sentence_transformer import losses

        model = sentence_transformer(encoder)
    torch.manual_seed(SEED)
    network, frames = getattr(losses, loss)(model, **options), batches(pairs, config)

    def value() -> torch.Tensor:
        frame = next(frames)
        features = [model.preprocess(frame[side].to_list()) for side in ("text_1", "text_2")]
        return network(features, torch.tensor(frame[column].to_list()))

    return plain_step(list(network.parameters()), value)
