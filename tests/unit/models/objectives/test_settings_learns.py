"""A few steps on an embedded encoder and real sentences: the loss falls, and the dev score rises."""

import polars as pl
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.storage.assets.embedded import embedded_path

STEPS = 20
USUAL = {"precision": "fp32", "lr": 1e-3, "batch_size": 16, "max_steps": STEPS, "eval_every": STEPS, "select": "last"}


@pytest.mark.parametrize(
    ("objective", "rise"),  # of dev Spearman: a third of the observed
    [(BSLConfig(target_norm="standardize"), 0.03), (ContrastiveConfig(), 0.08), (SimCSEConfig(), 0.04)],
    ids=["bsl", "contrastive", "simcse"],
)
def test_training_lowers_the_loss_and_raises_the_dev_score(shallow, objective, rise):
    torch.set_num_threads(1)
    dropout = 0.1 if objective.name == "simcse" else None
    encoder = SentenceEncoder.load(shallow, EncoderConfig(model="shallow", dropout=dropout))
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    short = sample.filter(pl.col("premise").str.len_chars() < 60, pl.col("label") == 0)
    pairs = short.select(text_1="premise", text_2="hypothesis").head(16 * STEPS)
    dev = pl.read_parquet(embedded_path("stsb") / "dev.parquet").filter(pl.col("sentence1").str.len_chars() < 60)
    config = TrainingConfig(objective=objective, collapse=None, **USUAL)
    result = train(pairs, encoder, config, dev=dev.head(200))
    loss = result.log["loss"].drop_nulls()
    assert len(loss) == STEPS
    assert loss.tail(3).mean() < loss.head(3).mean()
    assert result.best_dev - result.start_dev > rise
