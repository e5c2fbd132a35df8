"""Unsupervised SimCSE: two dropout masks of the same sentence."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import torch

from benchmarks.speed.stepping import Step, batches, plain_step, product_step, sentence_transformer, training
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.contrastive_config import SimCSEConfig

PEER = "sentence-transformers MultipleNegativesRankingLoss"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step, without a head because the peer has none, and the peer's."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    encoder = EncoderConfig(model=str(encoder_folder), pooling="cls", dropout=0.1, max_length=64)
    objective = SimCSEConfig(head="none")
    model = sentence_transformer(encoder)
    loss = MultipleNegativesRankingLoss(model, scale=1 / objective.temperature)
    some = batches(pairs, training(objective))

    def peer() -> torch.Tensor:
        texts = next(some)["text_1"].to_list()
        value: torch.Tensor = loss([model.preprocess(texts), model.preprocess(texts)], None)
        return value

    return product_step(encoder, pairs, training(objective)), plain_step(list(model.parameters()), peer)
