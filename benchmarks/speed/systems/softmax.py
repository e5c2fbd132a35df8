"""SBERT's softmax on NLI: the product's step, and sentence-transformers' SoftmaxLoss."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.speed.stepping import Step, product_step
from benchmarks.speed.supervised_steps import annotated, config_of, encoder_of, sentence_transformers_step
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.supervised_config import SoftmaxConfig


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step and the peer's on equal batches of labelled pairs."""
    encoder, pairs, config = encoder_of(encoder_folder), annotated(pairs), config_of(SoftmaxConfig())
    options = {"embedding_dimension": SentenceEncoder.load(encoder_folder, encoder).width, "num_labels": 3}
    peer = sentence_transformers_step(encoder, pairs, config, "SoftmaxLoss", "label", **options)
    return product_step(encoder, pairs, config), peer
