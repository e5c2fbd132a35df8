"""A few steps of each objective on the embedded encoder and real sentences raise dev Spearman."""

from pathlib import Path

import polars as pl
import pytest
import torch

from models.encoder.config import EncoderConfig
from models.encoder.sentence_encoder import SentenceEncoder
from models.objectives.config import BarlowConfig, BSLConfig, ContrastiveConfig, SimCSEConfig, VICRegConfig
from models.training.config import TrainingConfig
from models.training.dev_evaluation import DevSet
from models.training.loop import train

ASSETS = Path(__file__).parents[4] / "storage" / "assets"
ROWS, STEPS = 16, 20
# Objective and the required rise of dev Spearman (about a third of the observed rise).
CASES = [
    (BSLConfig(target_norm="standardize"), 0.03),
    (ContrastiveConfig(), 0.08),
    (SimCSEConfig(), 0.04),
    (VICRegConfig(target_norm="standardize", k=2), 0.015),
    (BarlowConfig(target_norm="standardize", k=2), 0.005),
]


@pytest.fixture(scope="module")
def pairs():
    rows = pl.read_parquet(ASSETS / "nli-sample" / "train.parquet").filter(pl.col("label") == 0)
    short = rows.filter(pl.col("premise").str.len_chars() < 60)
    return short.select(text_1="premise", text_2="hypothesis").head(ROWS * STEPS)


@pytest.fixture(scope="module")
def dev():
    rows = pl.read_parquet(ASSETS / "stsb" / "dev.parquet").filter(pl.col("sentence1").str.len_chars() < 60)
    rows = rows.head(200)
    return DevSet("stsb dev", *(rows[name].to_list() for name in ("sentence1", "sentence2", "score")))


@pytest.mark.parametrize(("objective", "gain"), CASES, ids=[case[0].name for case in CASES])
def test_a_few_steps_lower_the_loss_and_raise_dev_spearman(pairs, dev, shallow, objective, gain):
    torch.set_num_threads(1)
    dropout = 0.1 if objective.name == "simcse" else None
    encoder = SentenceEncoder.load(shallow, EncoderConfig(model="shallow", dropout=dropout))
    config = TrainingConfig(
        precision="fp32",
        objective=objective,
        lr=1e-3,
        batch_size=ROWS,
        max_steps=STEPS,
        eval_every=STEPS,
        select="last",
        optimizer="adamw",
    )
    result = train(pairs, encoder, config, dev=dev)
    loss = result.log["loss"].drop_nulls()
    assert loss.tail(3).mean() < loss.head(3).mean()
    assert result.best_dev - result.start_dev > gain
