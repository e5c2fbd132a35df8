"""Regression of the cosine on scores: the product's step, and sentence-transformers' CosineSimilarityLoss."""

from pathlib import Path

import polars as pl

from models.objectives.supervised_config import RegressionConfig
from tests.bench.supervised_steps import Step, annotated, config_of, product_step, sentence_transformers_step


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Our step and the peer's on equal batches of scored pairs; the two losses are equal."""
    pairs, config = annotated(pairs), config_of(RegressionConfig())
    peer = sentence_transformers_step(encoder_folder, pairs, config, "CosineSimilarityLoss", "score")
    return product_step(encoder_folder, pairs, config), peer
