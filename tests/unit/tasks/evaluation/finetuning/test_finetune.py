"""Fine-tuning by cosine regression equals a plain training loop; its stages score and aggregate seeds."""

import logging
import os
import signal

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EvaluationError, TrainingError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.significance.seeds import over_seeds
from bsl.models.training import loop
from bsl.models.training.config import AFS_CONFIG, STSB_CONFIG, STSB_CROSS_CONFIG
from bsl.models.training.loop import train
from bsl.models.views.annotated_pairs import both_orders, graded_pairs
from bsl.storage.artifacts.store import Store
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.evaluation.finetuning.finetune import FineTuning
from bsl.tasks.evaluation.finetuning.sts import score_supervised, summarise_seeds
from bsl.tasks.stage.progress import listening
from tests.corpora import score_row, scores_of
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, tiny_encoder, write_tiny
from tests.toy_sets import allow_any_rows

ONE, TWO = ORIGINALS * 3, BACK_DE + BACK_DE[1:] + BACK_DE[:1] + BACK_FR
FIVES = [5.0] * 4 + [0.0, 0.5, 1.0, 1.5] + [4.5] * 4
GOLD = np.array(FIVES) / 5
PAIRS = graded_pairs(pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": 5 * GOLD}), 5)


def test_full_batch_fine_tuning_matches_adamw_on_squared_error(tmp_path):
    changes = {"batch_size": 12, "epochs": 3, "lr": 1e-3, "weight_decay": 0.0, "warmup": 0.0, "clip": 1e9}
    tuned, plain = (tiny_encoder(tmp_path, dropout=0.0, layers=1)[0] for _ in range(2))
    tokenizer = tiny_encoder(tmp_path, layers=1)[1]
    result = train(PAIRS, SentenceEncoder(tuned, tokenizer), STSB_CONFIG.model_copy(update=changes))

    def sides(network):
        batch = [tokenizer(texts, padding=True, return_tensors="pt") for texts in (ONE, TWO)]
        return (network(side["input_ids"], side["attention_mask"]) for side in batch)

    optimizer = torch.optim.AdamW(plain.parameters(), eps=1e-6, weight_decay=0.0)
    for step in range(3):
        optimizer.param_groups[0]["lr"] = 1e-3 * (3 - step) / 3
        loss = (torch.cosine_similarity(*sides(plain)) - torch.from_numpy(GOLD).float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found, expected = (torch.cosine_similarity(*sides(network)) for network in (result.encoder, plain))
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)


def test_convolutions_are_drawn_by_the_seed_of_fine_tuning(tmp_path):
    config = EncoderConfig(model="tiny", max_length=24, cnn=CNNConfig(kernels=(1, 3), channels=6))
    encoder = SentenceEncoder.load(write_tiny(tmp_path, layers=1), config)
    still = STSB_CONFIG.model_copy(update={"epochs": 1, "lr": 1e-6})
    made = [train(PAIRS, encoder, still.model_copy(update={"seed": seed})).encoder for seed in (0, 0, 1)]
    first, again, other = (one.token_heads[0].convs[1].weight for one in made)
    assert torch.equal(first, again)
    assert (first - other).abs().max() > 0.01


def test_fine_tuning_defaults_match_the_published_settings():
    stsb, afs = STSB_CONFIG, AFS_CONFIG
    assert (stsb.batch_size, stsb.epochs, stsb.lr, stsb.warmup, stsb.decay) == (16, 4, 2e-5, 0.1, "linear")
    assert (afs.batch_size, afs.epochs, afs.lr) == (32, 3, 2e-5)
    for config in (stsb, afs):
        assert (config.optimizer, config.eps, config.weight_decay, config.clip) == ("adamw", 1e-6, 0.01, 1)
        assert (config.drop_last, config.eval_every, config.collapse) == (False, "epoch", None)


def test_both_orders_doubles_pairs_with_swapped_texts():
    doubled = both_orders(PAIRS)
    assert doubled["text_1"].to_list() == ONE + TWO
    assert doubled["text_2"].to_list() == TWO + ONE
    assert doubled["score"].to_list() == pytest.approx([*GOLD, *GOLD])


def rows(values, metric="spearman"):
    fixed = {"metric": metric, "protocol": "supervised", "signature": "set:stsb/test|protocol:supervised|len:64"}
    return scores_of([score_row("stsb", value, seed=seed, **fixed) for seed, value in values.items()])


def test_over_seeds_returns_mean_standard_deviation_and_interval_of_equal_seeds():
    found = {row["protocol"]: row for row in over_seeds(rows({0: 0.80, 1: 0.82, 2: 0.87})).to_dicts()}
    mean, spread = found["supervised-mean"], found["supervised-sd"]
    assert (mean["value"], spread["value"]) == pytest.approx((0.83, np.std([0.80, 0.82, 0.87], ddof=1)))
    # Student's t with 2 degrees of freedom: 4.3027
    assert mean["ci_high"] == pytest.approx(0.83 + 4.3027 * 0.0360555 / 3**0.5, abs=1e-4)
    assert (mean["n"], spread["ci_low"]) == (3, None)
    assert mean["signature"] == "set:stsb/test|protocol:supervised-mean|len:64|seeds:3"
    with pytest.raises(EvaluationError, match="1 seed, expected at least 2"):
        over_seeds(rows({0: 0.8}))
    with pytest.raises(EvaluationError, match="has 1 of 2 seeds"):
        over_seeds(pl.concat([rows({0: 0.8, 1: 0.9}), rows({0: 0.7}, metric="pearson")]))


@pytest.fixture
def scored(site, tmp_path, monkeypatch):
    """Return a function that fine-tunes a tiny encoder on toy splits of STS-B in a store, and scores it."""
    allow_any_rows(monkeypatch, "stsb")
    (tmp_path / "stsb").mkdir()
    frame = pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": FIVES})
    for split, repeats in (("train", 30), ("dev", 5), ("test", 5)):
        pl.concat([frame] * repeats).write_parquet(tmp_path / "stsb" / f"{split}.parquet")
    encoder = resolve_model(str(write_tiny(tmp_path / "tiny", dropout=0.0, layers=1)))
    sets = tuple(
        resolve_scored_set(site.model_copy(update={"mirror": str(tmp_path)}), f"stsb/{split}")
        for split in ("train", "dev", "test")
    )

    def call(config, seed, store=site.store):
        settings = config.model_copy(update={"batch_size": 16, "epochs": 2})
        tuning = FineTuning(encoder=encoder, network=EncoderConfig(model="tiny", max_length=24), config=settings)
        place = site.model_copy(update={"store": str(store), "save_every": 1})
        return score_supervised(place, tuning, "tiny", "", sets, seed, BootstrapConfig(resamples=100))

    return call


COSINE, CROSS = STSB_CONFIG.model_copy(update={"lr": 3e-3}), STSB_CROSS_CONFIG.model_copy(update={"lr": 5e-3})


@pytest.mark.parametrize(
    ("config", "protocol", "made", "least"),
    [(COSINE, "supervised", "cosine", 0.8), (CROSS, "cross-encoder", "score", 0.4)],
)
def test_supervised_stages_score_each_seed_and_summarise_seeds(site, scored, config, protocol, made, least):
    refs, store = tuple(scored(config, seed) for seed in (0, 1)), site.open_store()
    assert len({ref.key for ref in refs}) == 2
    single = store.scan(refs[1]).collect()
    assert single["seed"].unique().to_list() == [1]
    assert single.filter(metric="spearman")["value"].item() > least
    summary = store.scan(summarise_seeds(site, scores=refs)).collect()
    assert set(summary["protocol"]) == {f"{protocol}-mean", f"{protocol}-sd"}
    assert all(f"by:{made}|" in line for line in summary["signature"])


@pytest.mark.parametrize("config", [COSINE, CROSS], ids=["cosine", "cross-encoder"])
def test_stopped_fine_tuning_resumes_to_the_same_artifact(scored, tmp_path, monkeypatch, caplog, config):
    monkeypatch.setattr(loop, "REPORT_S", 0)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    expected = scored(config, 1, whole)
    before = signal.signal(signal.SIGTERM, lambda *_: None)

    def stop(event, value):
        if event == "advances":
            os.kill(os.getpid(), signal.SIGTERM)

    with listening(stop), pytest.raises(TrainingError, match="stopped on request after step"):
        scored(config, 1, stopped)
    signal.signal(signal.SIGTERM, before)
    caplog.set_level(logging.INFO)
    assert scored(config, 1, stopped) == expected
    assert any("resuming at step" in message for message in caplog.messages)
    assert len({Store(str(folder)).manifest(expected).digest for folder in (whole, stopped)}) == 1
