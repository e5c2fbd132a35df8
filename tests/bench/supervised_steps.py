"""Steps on annotated pairs for tests/bench/systems: the product's, and sentence-transformers' of one of its losses.

Both take the same batches in the same order, fp32, AdamW at a rate that hardly moves the weights.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import polars as pl
import torch
from transformers import PreTrainedTokenizerBase

from models.encoder.config import EncoderConfig
from models.encoder.export import export_sentence_transformers
from models.encoder.loading import load_encoder
from models.encoder.network import Encoder
from models.objectives.config import AnyObjective
from models.objectives.registry import build_objective, needs_of
from models.training.batches import BatchOrder
from models.training.config import TrainingConfig
from models.training.optimizer import make_optimizer
from models.training.run import LiveRun
from models.training.step import take_step
from models.training.token_file import open_token_file

Step = Callable[[], float]
RATE, LENGTH, ROWS = 1e-5, 64, 32


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


def loaded(folder: Path) -> tuple[Encoder, PreTrainedTokenizerBase]:
    """The encoder of a folder, mean-pooled."""
    return load_encoder(folder, EncoderConfig(model=str(folder), max_length=LENGTH))


def config_of(objective: AnyObjective) -> TrainingConfig:
    """Equal settings for both sides."""
    return TrainingConfig(
        objective=objective, lr=RATE, batch_size=ROWS, warmup=0.0, decay="constant", epochs=1000, order="given"
    )


def batches(pairs: pl.DataFrame, config: TrainingConfig) -> Iterator[pl.DataFrame]:
    """The rows of each step, as frames."""
    order = BatchOrder(len(pairs), config, lambda rows: rows)
    return (pairs[order.rows(number)] for number in count(1))


def product_step(folder: Path, pairs: pl.DataFrame, config: TrainingConfig) -> Step:
    """The product's step."""
    encoder, tokenizer = loaded(folder)
    torch.manual_seed(0)
    objective = build_objective(encoder, config.objective)
    place = Path(tempfile.mkdtemp())
    data = open_token_file(place, pairs.lazy(), tokenizer, LENGTH, needs_of(config.objective))
    order = BatchOrder(len(data), config, data.lengths_of)
    run = LiveRun("bench", 10**9, objective, make_optimizer(objective, config))

    def step() -> float:
        return float(take_step(run, data.take(order.rows(run.step + 1)), config).loss)

    return step


def sentence_transformers_step(
    folder: Path, pairs: pl.DataFrame, config: TrainingConfig, loss: str, column: str, **options: int
) -> Step:
    """A step of sentence-transformers' loss of that name: its own tokenisation and padding, fused AdamW, clipping.

    Args:
        folder: The encoder's.
        pairs: With `column`.
        config: Of the product's step.
        loss: A class of `sentence_transformers.losses`.
        column: What the loss learns of a pair.
        options: Further arguments of the class.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import losses

    place = Path(tempfile.mkdtemp())
    export_sentence_transformers(*loaded(folder), place)
    model = SentenceTransformer(str(place), device="cpu").train()
    torch.manual_seed(0)
    network = getattr(losses, loss)(model, **options)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, eps=config.eps, fused=True)
    frames = batches(pairs, config)

    def step() -> float:
        frame = next(frames)
        features = [model.tokenize(frame[side].to_list()) for side in ("text_1", "text_2")]
        value = network(features, torch.tensor(frame[column].to_list()))
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip)
        optimizer.step()
        return float(value.detach())

    return step
