"""Fine-tuning by cosine regression learns, equals a plain training loop, and aggregates its seeds."""

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.config import CNNConfig, EncoderConfig, EncoderOverrides
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EvaluationError, TrainingError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.evaluation.significance.seeds import over_seeds
from bsl.models.objectives.contrastive_config import ISBERTConfig
from bsl.models.training.config import AFS_CONFIG, STSB_CONFIG, STSB_CROSS_CONFIG, TrainingConfig
from bsl.models.training.loop import train
from bsl.models.views.annotated_pairs import both_orders, graded_pairs
from bsl.storage.artifacts.schemas import SCORES
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.evaluation.finetuning.finetune import FineTuning
from bsl.tasks.evaluation.finetuning.sts import score_supervised, summarise_seeds
from bsl.tasks.evaluation.systems import find_encoder_system
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import tiny_encoder, write_tiny
from tests.tiny_finetuning import FIRST as ONE
from tests.tiny_finetuning import GOLD as FIVES
from tests.tiny_finetuning import SECOND as TWO
from tests.toy_sets import allow_any_rows

GOLD = np.array(FIVES) / 5
PAIRS = graded_pairs(pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": 5 * GOLD}), 5)
CONFIG = STSB_CONFIG.model_copy(update={"batch_size": 5, "epochs": 15, "lr": 6e-3})  # 3 steps per epoch, 2 pairs last


def tuned(folder, pairs=PAIRS, dropout=0.1, dev=None, **changes):
    encoder, tokenizer = tiny_encoder(folder, dropout=dropout, layers=1)
    return train(pairs, SentenceEncoder(encoder, tokenizer), CONFIG.model_copy(update=changes), dev=dev)


def cosines(encoder, tokenizer):
    return cosine_scores(*(SentenceEncoder(encoder, tokenizer).encode(side) for side in (ONE, TWO)))


def ranked(result, folder):
    return spearman(cosines(result.encoder, tiny_encoder(folder, layers=1)[1]), GOLD)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """Return the rank correlation after fine-tuning."""
    folder = tmp_path_factory.mktemp("learnt")
    return ranked(tuned(folder), folder)


def test_fine_tuning_improves_spearman_on_training_pairs(tmp_path, learnt):
    before = spearman(cosines(*tiny_encoder(tmp_path, layers=1)), GOLD)
    assert learnt > max(0.85, before)


def test_full_batch_fine_tuning_matches_adamw_on_squared_error(tmp_path):
    changes = {"batch_size": 12, "epochs": 3, "lr": 1e-3, "weight_decay": 0.0, "warmup": 0.0, "clip": 1e9}
    result = tuned(tmp_path, dropout=0.0, **changes)

    plain, tokenizer = tiny_encoder(tmp_path, dropout=0.0, layers=1)
    optimizer = torch.optim.AdamW(plain.parameters(), eps=1e-6, weight_decay=0.0)
    for step in range(3):
        optimizer.param_groups[0]["lr"] = 1e-3 * (3 - step) / 3
        batch = [tokenizer(texts, padding=True, return_tensors="pt") for texts in (ONE, TWO)]
        one, two = (plain(side["input_ids"], side["attention_mask"]) for side in batch)
        loss = (torch.cosine_similarity(one, two) - torch.from_numpy(GOLD).float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(cosines(result.encoder, tokenizer), cosines(plain, tokenizer), atol=2e-4)


def test_fine_tuning_selects_the_epoch_with_best_dev_spearman(tmp_path, learnt):
    """The dev set is the opposite of the training set: an early epoch is selected, and never the start."""
    result = tuned(tmp_path, dev=pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": 1 - GOLD}))
    evaluated = result.log.drop_nulls("dev_spearman")
    assert evaluated["step"].to_list() == list(range(0, 46, 3))
    after = evaluated.filter(pl.col("step") > 0)
    assert result.best_step == after["step"][after["dev_spearman"].arg_max()] < 45
    assert result.best_dev == after["dev_spearman"].max() <= result.start_dev
    assert ranked(result, tmp_path) < learnt


def test_fine_tuning_defaults_match_the_published_settings():
    stsb, afs = STSB_CONFIG, AFS_CONFIG
    assert (stsb.batch_size, stsb.epochs, stsb.lr, stsb.warmup, stsb.decay) == (16, 4, 2e-5, 0.1, "linear")
    assert (afs.batch_size, afs.epochs, afs.lr) == (32, 3, 2e-5)
    for config in (stsb, afs):
        assert (config.optimizer, config.eps, config.weight_decay, config.clip) == ("adamw", 1e-6, 0.01, 1)
        assert (config.drop_last, config.eval_every, config.collapse) == (False, "epoch", None)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (PAIRS.with_columns(score=pl.when(pl.int_range(12) != 7).then("score")), "score of pair 7 is null"),
        (PAIRS.with_columns(score=5 * pl.col("score")), r"score of pair 0 is 5\.0, expected 0 to 1"),
        (PAIRS.with_columns(score=pl.lit(float("nan"))), "score of pair 0 is nan"),
        (PAIRS.drop("score"), "score of pair 0 is missing, but the objective or the order needs it"),
        (PAIRS.clear(), "0 pairs, expected at least one batch"),
    ],
)
def test_invalid_training_scores_or_empty_pairs_raise_an_error(tmp_path, pairs, message):
    with pytest.raises(TrainingError, match=message):
        tuned(tmp_path, pairs)


def test_both_orders_doubles_pairs_with_swapped_texts():
    doubled = both_orders(PAIRS)
    assert doubled["text_1"].to_list() == ONE + TWO
    assert doubled["text_2"].to_list() == TWO + ONE
    assert doubled["score"].to_list() == pytest.approx([*GOLD, *GOLD])


def rows(values, metric="spearman"):
    fixed = {
        "model": "m", "dataset": "stsb", "subset": "all", "split": "test", "metric": metric, "protocol": "supervised",
        "n": 9, "ci_low": 0.0, "ci_high": 1.0, "checkpoint": "",
        "signature": "set:stsb/test|protocol:supervised|len:64",
    }  # fmt: skip
    table = pl.DataFrame([{**fixed, "value": value, "seed": seed} for seed, value in values.items()])
    return table.select(SCORES.names()).cast(SCORES)


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


@pytest.mark.parametrize(
    ("settings", "rate", "protocol", "made", "least"),
    [(STSB_CONFIG, 3e-3, "supervised", "cosine", 0.8), (STSB_CROSS_CONFIG, 5e-3, "cross-encoder", "score", 0.4)],
)
def test_supervised_stages_score_each_seed_and_summarise_seeds(
    site, tmp_path, monkeypatch, settings, rate, protocol, made, least
):
    allow_any_rows(monkeypatch, "stsb")
    (tmp_path / "stsb").mkdir()
    frame = pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": FIVES})
    for split, repeats in (("train", 30), ("dev", 5), ("test", 5)):
        pl.concat([frame] * repeats).write_parquet(tmp_path / "stsb" / f"{split}.parquet")
    site, store = site.model_copy(update={"mirror": str(tmp_path)}), site.open_store()
    tuning = FineTuning(
        encoder=resolve_model(str(write_tiny(tmp_path / "tiny", dropout=0.0, layers=1))),
        network=EncoderConfig(model="tiny", max_length=24),
        config=settings.model_copy(update={"batch_size": 16, "epochs": 2, "lr": rate}),
    )
    sets = tuple(resolve_scored_set(site, f"stsb/{split}") for split in ("train", "dev", "test"))
    refs = tuple(
        score_supervised(site, tuning, "tiny", "", sets, seed, BootstrapConfig(resamples=100)) for seed in (0, 1)
    )
    assert len({ref.key for ref in refs}) == 2
    single = store.scan(refs[1]).collect()
    assert single["seed"].unique().to_list() == [1]
    assert single.filter(metric="spearman")["value"].item() > least
    summary = store.scan(summarise_seeds(site, scores=refs)).collect()
    assert set(summary["protocol"]) == {f"{protocol}-mean", f"{protocol}-sd"}
    assert all(f"by:{made}|" in line for line in summary["signature"])


CNN = CNNConfig(kernels=(1, 3), channels=6)
STILL = STSB_CONFIG.model_copy(update={"batch_size": 4, "epochs": 2, "lr": 1e-6})  # hardly changes weights
SSL = TrainingConfig(
    precision="fp32", objective=ISBERTConfig(), batch_size=4, lr=1e-3, bias_correction=False, drop_last=False
)


def convolutions_of(folder, reading, seeds):
    """Return the convolutions after fine-tuning with each seed."""
    candidate = find_encoder_system(RunContext(), str(folder), reading)
    encoder = SentenceEncoder.load(candidate.encoder.folder, candidate.config)
    made = [train(PAIRS, encoder, STILL.model_copy(update={"seed": seed})).encoder for seed in seeds]
    assert [one.width for one in made] == [12] * len(made)
    return [convolution(one) for one in made]


def convolution(encoder):
    return encoder.token_heads[0].convs[1].weight


def test_fine_tuning_draws_convolutions_by_seed_or_starts_from_pretrained_ones(tmp_path):
    """IS-BERT's supervised rows: each seed draws convolutions (ft), or they are trained before (ssl + ft)."""
    bare = write_tiny(tmp_path / "bare")
    first, again, other = convolutions_of(bare, EncoderOverrides(cnn=CNN, max_length=24), (0, 0, 1))
    assert torch.equal(first, again)
    assert (first - other).abs().max() > 0.01
    encoder = SentenceEncoder.load(bare, EncoderConfig(model="tiny", max_length=24, cnn=CNN))
    learnt = train(PAIRS, encoder, SSL).encoder
    encoder.with_network(learnt).save(tmp_path / "learnt")
    for one in convolutions_of(tmp_path / "learnt", EncoderOverrides(), (0, 1)):
        torch.testing.assert_close(one, convolution(learnt), rtol=0, atol=1e-4)
