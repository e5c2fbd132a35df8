"""Regression of the cosine on scores: the product's step, and sentence-transformers' CosineSimilarityLoss."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.speed.stepping import Step, product_step
from benchmarks.speed.supervised_steps import annotated, config_of, encoder_of, sentence_transformers_step
from bsl.models.objectives.supervised_config import RegressionConfig


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step and the peer's on equal batches of scored pairs; the two losses are equal."""
    encoder, pairs, config = encoder_of(encoder_folder), annotated(pairs), config_of(RegressionConfig())
    peer = sentence_transformers_step(encoder, pairs, config, "CosineSimilarityLoss", "score")
    return product_step(encoder, pairs, config), peer
