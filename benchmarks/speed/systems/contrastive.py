"""Contrastive training on two views (Table 7)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import torch

from benchmarks.speed.stepping import Step, batches, plain_step, product_step, sentence_transformer, training
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig

PEER = "sentence-transformers MultipleNegativesRankingLoss"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step, whose negatives are both views of the other pairs, and the peer's, with second views only."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    encoder = EncoderConfig(model=str(encoder_folder), max_length=64)
    objective = ContrastiveConfig()
    model = sentence_transformer(encoder)
    loss = MultipleNegativesRankingLoss(model, scale=1 / objective.temperature)
    some = batches(pairs, training(objective))

    def peer() -> torch.Tensor:
        batch = next(some)
        value: torch.Tensor = loss([model.preprocess(batch[name].to_list()) for name in ("text_1", "text_2")], None)
        return value

    return product_step(encoder, pairs, training(objective)), plain_step(list(model.parameters()), peer)
