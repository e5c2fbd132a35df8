"""SBERT's softmax on NLI: the product's step, and sentence-transformers' SoftmaxLoss."""

from pathlib import Path

import polars as pl

from models.objectives.supervised_config import SoftmaxConfig
from tests.bench.supervised_steps import Step, annotated, config_of, loaded, product_step, sentence_transformers_step


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Step, Step]:
    """Our step and the peer's on equal batches of labelled pairs."""
    pairs, config = annotated(pairs), config_of(SoftmaxConfig())
    width = loaded(encoder_folder)[0].width
    options = {"embedding_dimension": width, "num_labels": 3}
    peer = sentence_transformers_step(encoder_folder, pairs, config, "SoftmaxLoss", "label", **options)
    return product_step(encoder_folder, pairs, config), peer
