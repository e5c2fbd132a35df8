"""SBERT's softmax on NLI: the product's step, and sentence-transformers' SoftmaxLoss."""

from pathlib import Path

import polars as pl

from models.encoder.sentence_encoder import SentenceEncoder
from models.objectives.config import SoftmaxConfig
from tests.bench.stepping import Step, product_step
from tests.bench.supervised_steps import annotated, config_of, encoder_of, sentence_transformers_step


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Return our step and the peer's on equal batches of labelled pairs."""
    encoder, pairs, config = encoder_of(encoder_folder), annotated(pairs), config_of(SoftmaxConfig())
    options = {"embedding_dimension": SentenceEncoder.load(encoder_folder, encoder).width, "num_labels": 3}
    peer = sentence_transformers_step(encoder, pairs, config, "SoftmaxLoss", "label", **options)
    return product_step(encoder, pairs, config), peer
