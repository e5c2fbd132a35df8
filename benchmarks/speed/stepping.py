"""Build one optimizer step of the product, and one of a plain training script, for the files in systems/."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.config import AnyObjective
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.optimizer import make_optimizer, take_step
from bsl.models.training.snapshots import TrainingState
from bsl.models.training.token_cache import open_token_cache

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

RATE, BATCH, SEED = 1e-5, 64, 0  # the weights hardly move, so all rounds time the same work
Step = Callable[[], float]
"""Takes a step on the next batch and returns its loss."""


def product_step(encoder: EncoderConfig, pairs: pl.DataFrame, config: TrainingConfig) -> Step:
    """Return the product's step."""
    start = SentenceEncoder.load(Path(encoder.model), encoder)
    online = start
    folder = tempfile.TemporaryDirectory()  # exists as long as the step, which reads the tokens from it
    needs = config.objective.needs
    data = open_token_cache(Path(folder.name), pairs.lazy(), start, needs)
    order = BatchOrder(len(data), config, data.lengths_of)
    torch.manual_seed(SEED)
    net = config.objective.build(online.network, online.tokenizer)
    run, number = TrainingState("", 10**9, net, make_optimizer(net, config)), itertools.count(1)

    def step() -> float:
        _ = folder
        return float(take_step(run, data.take(order.rows(next(number))), config)[0])

    return step


def batches(pairs: pl.DataFrame, config: TrainingConfig) -> Iterator[pl.DataFrame]:
    """Yield the pairs of each step as texts, in the product's order."""
    order = BatchOrder(len(pairs), config, lambda rows: rows)
    return (pairs[order.rows(number)] for number in itertools.count(1))


def plain_step(
    learning: list[torch.nn.Parameter], loss: Callable[[], torch.Tensor], after: Callable[[], None] | None = None
) -> Step:
    """Return a step: backward, clip and fused AdamW of a loss that takes its own batches; `after` follows each step."""
    optimizer = torch.optim.AdamW(learning, lr=RATE, eps=1e-6, weight_decay=0.01, fused=True)

    def step() -> float:
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if after:
            after()
        return float(value.detach())

    return step


def sentence_transformer(encoder: EncoderConfig) -> SentenceTransformer:
    """Return the same encoder loaded by sentence-transformers, in training mode."""
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as folder:
        SentenceEncoder.load(Path(encoder.model), encoder).save(Path(folder))
        return SentenceTransformer(folder, device="cpu").train()


def training(objective: AnyObjective) -> TrainingConfig:
    return TrainingConfig(
        precision="fp32", objective=objective, lr=RATE, warmup=0.0, decay="constant", batch_size=BATCH, epochs=1000
    )
