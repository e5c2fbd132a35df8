"""Unsupervised SimCSE: a sentence twice under dropout."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from models.encoder.config import EncoderConfig
from models.objectives.contrastive_config import SimCSEConfig
from tests.bench.stepping import batches, plain_step, product_step, sentence_transformer

PEER = "sentence-transformers MultipleNegativesRankingLoss"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Ours without the head that the peer has not, and the peer's."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    encoder = EncoderConfig(model=str(encoder_folder), pooling="cls", dropout=0.1, max_length=64)
    objective = SimCSEConfig(head="none")
    model = sentence_transformer(encoder)
    loss, some = MultipleNegativesRankingLoss(model, scale=1 / objective.temperature), batches(pairs, objective)

    def peer():
        texts = next(some)["text_1"].to_list()
        return loss([model.preprocess(texts), model.preprocess(texts)], None)

    return product_step(encoder, pairs, objective), plain_step(list(model.parameters()), peer)
