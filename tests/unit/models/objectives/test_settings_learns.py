"""A few steps of each objective on an embedded encoder and real sentences: the loss falls, the export is readable."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.config import AnyObjective
from bsl.models.objectives.contrastive_config import ContrastiveConfig, ISBERTConfig, SimCSEConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig, TSDAEConfig
from bsl.models.objectives.supervised_config import CrossSoftmaxConfig, RegressionConfig, SCLConfig, SoftmaxConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.models.training.token_cache import TeacherVectors
from bsl.models.views.config import DeletedView
from bsl.models.views.cropping import delete_words
from bsl.storage.assets.embedded import embedded_path
from tests.exports import library_vectors

STEPS = 20
USUAL = {"precision": "fp32", "lr": 1e-3, "batch_size": 16, "max_steps": STEPS, "eval_every": STEPS, "select": "last"}
FEWER = {"max_steps": 12}  # where the loss falls far
LABELLED = {"lr": 3e-4, "batch_size": 12, "epochs": 2}
PLUS = BSLConfig(
    k=2, momentum=0.9, momentum_schedule="cosine", target_norm="standardize", target_dropout=True,
    contrastive_weight=0.1,
)  # fmt: skip
RELEASED = {**FEWER, "batch_size": 4, "bias_correction": False, "eps": 1e-7}


@dataclass(frozen=True)
class Case:
    """`fall` of the loss and `rise` of dev Spearman are the least required: about a third of the observed rises."""

    objective: AnyObjective
    rows: str = "entailed"
    training: dict[str, Any] = field(default_factory=dict)
    encoder: dict[str, Any] = field(default_factory=dict)
    fall: float = 0.0
    rise: float | None = None


CASES = {
    "bsl": Case(BSLConfig(target_norm="standardize"), rise=0.03),
    "contrastive": Case(ContrastiveConfig(), rise=0.08),
    "simcse": Case(SimCSEConfig(), encoder={"dropout": 0.1}, rise=0.04),
    "BSL+": Case(PLUS, training=FEWER, encoder={"pooling": "first-last", "dropout": 0.1}),
    "matryoshka": Case(ContrastiveConfig(dims=(8,)), training=FEWER),
    "softmax": Case(SoftmaxConfig(), "labelled", LABELLED, {"dropout": 0.1}),
    "scl": Case(
        SCLConfig(similarity="cosine", temperature=0.05), "labelled", {**LABELLED, "order": "groups"},
        {"dropout": 0.1, "pooling": "mean-after-first"},
    ),
    "augment": Case(
        SCLConfig(control="augment", positives=3, negatives=3), "labelled", {**LABELLED, "order": "given"},
        {"dropout": 0.1},
    ),
    "regression": Case(RegressionConfig(), "labelled", {**LABELLED, "lr": 1e-3}, {"dropout": 0.1}),
    "cross-softmax": Case(CrossSoftmaxConfig(), "labelled", LABELLED, {"dropout": 0.1}),
    "is-bert": Case(ISBERTConfig(), "premises", RELEASED, {"cnn": CNNConfig(channels=32)}),
    "distil": Case(
        DistilConfig(loss="vectors", distance="cosine", projection_start="random"), "taught",
        {**FEWER, "batch_size": 8}, fall=0.2,
    ),
    # Its head is trained already, so the loss falls less than it varies with the masks.
    "masked-lm": Case(
        MaskedLMConfig(), "premises", {**FEWER, "lr": 3e-4, "batch_size": 8}, {"model": "bert-mini"}, fall=-1.0
    ),
    # Starts above ln 8192 nats: no causal pass was learnt.
    "tsdae": Case(TSDAEConfig(), "damaged", {**FEWER, "batch_size": 8, "warmup": 0.0}, {"pooling": "cls"}, fall=2.0),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> dict[str, pl.DataFrame]:
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    short = sample.filter(pl.col("premise").str.len_chars() < 60, pl.col("label") == 0)
    labelled = sample.filter(pl.col("premise").str.len_chars() < 50).sort("premise").head(150)
    score = pl.col("label").replace_strict({0: 0.9, 1: 0.5, 2: 0.1}, return_dtype=pl.Float32)
    group = pl.col("premise").rank("dense").cast(pl.UInt64)
    premises, whole = (sample[name].unique(maintain_order=True).head(160) for name in ("premise", "hypothesis"))
    return {
        "entailed": short.select(text_1="premise", text_2="hypothesis").head(16 * STEPS),
        "labelled": labelled.select("label", text_1="premise", text_2="hypothesis", score=score, group=group),
        "premises": pl.DataFrame({"text_1": premises, "text_2": premises}),
        "taught": pl.DataFrame({"text_1": premises, "text_2": premises, "sentence_id": range(160)}),
        "damaged": pl.DataFrame({"text_1": delete_words(whole.to_list(), range(160), DeletedView()), "text_2": whole}),
    }


@pytest.fixture(scope="module")
def dev() -> pl.DataFrame:
    sample = pl.read_parquet(embedded_path("stsb") / "dev.parquet").filter(pl.col("sentence1").str.len_chars() < 60)
    return sample.head(200)


@pytest.mark.parametrize("name", CASES)
def test_training_lowers_loss_and_sentence_transformers_loads_export(rows, dev, shallow, tmp_path, name):
    torch.set_num_threads(1)
    case = CASES[name]
    start = EncoderConfig(**{"model": "shallow", **case.encoder})
    encoder = SentenceEncoder.load(shallow if start.model == "shallow" else embedded_path(start.model), start)
    given = {"dev": dev} if case.rise else {}
    if case.rows == "taught":  # by projections of the encoder's own vectors
        vectors = encoder.encode(rows["taught"]["text_1"].to_list())
        vectors = vectors @ np.random.default_rng(0).normal(size=(vectors.shape[1], 48))
        given["teacher"] = TeacherVectors(np.arange(160, dtype=np.uint64), vectors.astype(np.float32))
    config = TrainingConfig(objective=case.objective, collapse=None, **{**USUAL, **case.training})
    result = train(rows[case.rows], encoder, config, **given)
    loss = result.log["loss"].drop_nulls()
    assert len(loss) == config.max_steps
    assert loss.tail(3).mean() < loss.head(3).mean() - case.fall
    if name == "masked-lm":
        assert loss.head(3).mean() < 4  # a new head would start at ln 8192 = 9.0
    if case.rise:
        assert result.best_dev - result.start_dev > case.rise
    made = encoder.with_network(result.encoder)
    made.save(tmp_path)
    texts = rows[case.rows]["text_2"].unique(maintain_order=True).to_list()[:12]
    # One by one: in a batch, their convolutions take the padding of shorter sentences for tokens.
    theirs = library_vectors(tmp_path, texts, batch_size=1)
    assert np.abs(theirs - made.encode(texts)).max() <= 1e-5
    assert result.encoder.width != encoder.width or np.abs(theirs - encoder.encode(texts)).max() > 1e-4
