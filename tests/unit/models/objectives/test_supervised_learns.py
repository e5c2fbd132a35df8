"""Supervised objectives: 20 steps of the real loop on embedded assets, resumed and exported."""

import warnings

import numpy as np
import polars as pl
import pytest
import torch

from models.encoder.config import EncoderConfig
from models.encoder.sentence_encoder import SentenceEncoder
from models.errors import InterruptedRunError
from models.objectives.config import CrossSoftmaxConfig, RegressionConfig, SCLConfig, SoftmaxConfig
from models.training.config import TrainingConfig
from models.training.execution import Execution
from models.training.loop import train
from storage.assets.embedded import embedded_path
from tests.tiny_encoder import pair_of

STEPS, ROWS = 20, 12
POOLED = "mean-after-first"
CASES = {
    "softmax": TrainingConfig(precision="fp32", objective=SoftmaxConfig(), lr=3e-4),
    "scl": TrainingConfig(
        precision="fp32", objective=SCLConfig(similarity="cosine", temperature=0.05), lr=3e-4, order="groups"
    ),
    "augment": TrainingConfig(
        precision="fp32", objective=SCLConfig(control="augment", positives=3, negatives=3), lr=3e-4, order="given"
    ),
    "regression": TrainingConfig(precision="fp32", objective=RegressionConfig(), lr=1e-3),
    "cross-softmax": TrainingConfig(precision="fp32", objective=CrossSoftmaxConfig(), lr=3e-4),
}


@pytest.fixture(scope="module")
def pairs():
    """Return short labelled pairs of the embedded sample, grouped by premise, with a score per label."""
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    short = rows.filter(pl.col("premise").str.len_chars() < 50).sort("premise").head(150)
    group = pl.col("premise").rank("dense").cast(pl.UInt64)
    score = pl.col("label").replace_strict({0: 0.9, 1: 0.5, 2: 0.1}, return_dtype=pl.Float32)
    return short.select(text_1="premise", text_2="hypothesis", label="label", group=group, score=score)


def start(folder, pooling="mean"):
    torch.set_num_threads(1)
    return SentenceEncoder.load(folder, EncoderConfig(model="shallow", pooling=pooling, dropout=0.1, max_length=32))


@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_are_the_same_resumed_or_not_and_what_was_learnt_is_exported(pairs, shallow, tmp_path, name):
    changes = {"batch_size": ROWS, "max_steps": STEPS, "epochs": 2, "eval_every": STEPS, "collapse": None}
    config = CASES[name].model_copy(update=changes)
    encoder, tokenizer = pair_of(start(shallow, POOLED if name == "scl" else "mean"))
    whole = train(pairs, SentenceEncoder(encoder, tokenizer), config)
    asked = iter([False] * 8 + [True])
    stops = Execution(work=tmp_path / "work", should_stop=lambda: next(asked))
    with pytest.raises(InterruptedRunError, match="after step 9 of 20"):
        train(pairs, SentenceEncoder(encoder, tokenizer), config, execution=stops)
    resumed = train(pairs, SentenceEncoder(encoder, tokenizer), config, execution=Execution(work=tmp_path / "work"))
    assert whole.log.equals(resumed.log)
    for part, tensors in whole.state.tensors.items():
        assert all(torch.equal(value, resumed.state.tensors[part][key]) for key, value in tensors.items()), part
    losses = whole.log["loss"].drop_nulls()
    assert len(losses) == STEPS
    assert losses.tail(6).mean() < losses.head(6).mean()

    SentenceEncoder(resumed.encoder, tokenizer).save(tmp_path / "out")
    texts = pairs["text_2"].unique().to_list()[:20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from the library's own imports
        from sentence_transformers import SentenceTransformer

        theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts)
    assert np.abs(theirs - SentenceEncoder(resumed.encoder, tokenizer).encode(texts)).max() <= 1e-5
