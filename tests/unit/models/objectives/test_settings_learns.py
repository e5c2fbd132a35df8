"""A few steps on an embedded encoder and real sentences: the loss falls, and the dev score rises."""

import polars as pl
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig, TSDAEConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.models.views.config import DeletedView
from bsl.models.views.cropping import delete_words
from bsl.storage.assets.embedded import embedded_path

STEPS = 20
USUAL = {"precision": "fp32", "lr": 1e-3, "batch_size": 16, "max_steps": STEPS, "eval_every": STEPS, "select": "last"}
FEWER = {"max_steps": 12, "batch_size": 8}  # where the loss falls far
CASES = {  # objective, training, encoder, least fall of the loss, least rise of dev Spearman: a third of the observed
    "bsl": (BSLConfig(target_norm="standardize"), {}, {}, 0.0, 0.03),
    "contrastive": (ContrastiveConfig(), {}, {}, 0.0, 0.08),
    "simcse": (SimCSEConfig(), {}, {"dropout": 0.1}, 0.0, 0.04),
    # Its head is trained already, so the loss falls less than it varies with the masks.
    "masked-lm": (MaskedLMConfig(), {**FEWER, "lr": 3e-4}, {"model": "bert-mini"}, -1.0, None),
    # Starts above ln 8192 nats: no causal pass was learnt.
    "tsdae": (TSDAEConfig(), {**FEWER, "warmup": 0.0}, {"pooling": "cls"}, 2.0, None),
}


def pairs_for(name):
    """Return entailed pairs of the embedded sample; for language models, a sentence twice, for TSDAE once damaged."""
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    if name == "masked-lm":
        return sample.select(text_1="premise", text_2="premise").unique(maintain_order=True).head(160)
    if name == "tsdae":
        whole = sample["hypothesis"].unique(maintain_order=True).head(160)
        return pl.DataFrame({"text_1": delete_words(whole.to_list(), range(160), DeletedView()), "text_2": whole})
    short = sample.filter(pl.col("premise").str.len_chars() < 60, pl.col("label") == 0)
    return short.select(text_1="premise", text_2="hypothesis").head(16 * STEPS)


@pytest.mark.parametrize("name", CASES)
def test_training_lowers_the_loss_and_raises_the_dev_score(shallow, name):
    torch.set_num_threads(1)
    objective, training, encoder, fall, rise = CASES[name]
    start = EncoderConfig(**{"model": "shallow", **encoder})
    encoder = SentenceEncoder.load(shallow if start.model == "shallow" else embedded_path(start.model), start)
    dev = pl.read_parquet(embedded_path("stsb") / "dev.parquet").filter(pl.col("sentence1").str.len_chars() < 60)
    config = TrainingConfig(objective=objective, collapse=None, **{**USUAL, **training})
    result = train(pairs_for(name), encoder, config, dev=dev.head(200) if rise else None)
    loss = result.log["loss"].drop_nulls()
    assert len(loss) == config.max_steps
    assert loss.tail(3).mean() < loss.head(3).mean() - fall
    if name == "masked-lm":
        assert loss.head(3).mean() < 4  # a new head would start at ln 8192 = 9.0
    if rise:
        assert result.best_dev - result.start_dev > rise
