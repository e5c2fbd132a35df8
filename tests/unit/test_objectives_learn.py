"""Each objective on the embedded encoder and real sentences: a few steps order held-out pairs better than none."""

from pathlib import Path

import polars as pl
import pytest
import torch

from models.bsl.config import BSLConfig
from models.encoder.config import EncoderConfig
from models.encoder.transformer import load_encoder
from models.objectives.config import BarlowConfig, ContrastiveConfig, SimCSEConfig, VICRegConfig
from models.training.config import TrainingConfig
from models.training.health import DevSet
from models.training.loop import train

ASSETS = Path(__file__).parents[2] / "storage" / "assets"
STEPS = 16
# objective, learning rate, and by how much dev Spearman must rise
CASES = [
    (BSLConfig(target_norm="standardize"), 1e-3, 0.02),
    (ContrastiveConfig(), 1e-3, 0.02),
    (SimCSEConfig(head="none"), 3e-4, 0.005),
    (VICRegConfig(target_norm="standardize", k=2), 1e-3, 0.02),
    (BarlowConfig(target_norm="standardize", k=2), 1e-3, 0.02),
]


@pytest.fixture(scope="module")
def pairs():
    rows = pl.read_parquet(ASSETS / "nli-sample" / "train.parquet").filter(pl.col("label") == 0)
    return rows.select(text_1="premise", text_2="hypothesis").head(32 * STEPS)


@pytest.fixture(scope="module")
def dev():
    rows = pl.read_parquet(ASSETS / "stsb" / "dev.parquet").gather_every(5)
    return DevSet("stsb dev", *(rows[name].to_list() for name in ("sentence1", "sentence2", "score")))


@pytest.mark.parametrize(("objective", "lr", "gain"), CASES, ids=[case[0].name for case in CASES])
def test_a_few_steps_raise_dev_spearman(pairs, dev, objective, lr, gain):
    torch.set_num_threads(1)
    dropout = 0.1 if objective.name == "simcse" else None
    encoder, tokenizer = load_encoder(ASSETS / "bert-mini", EncoderConfig(model="embedded:bert-mini", dropout=dropout))
    config = TrainingConfig(
        objective=objective, lr=lr, batch_size=32, max_steps=STEPS, eval_every=STEPS, select="last", optimizer="adamw"
    )
    result = train(pairs, encoder, tokenizer, config, dev=dev)
    print(objective.name, result.start_dev, result.best_dev, result.log["loss"].drop_nulls().to_list())
    assert result.best_dev - result.start_dev > gain
