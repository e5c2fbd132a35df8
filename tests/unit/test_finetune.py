"""Fine-tuning by cosine regression: it learns, it repeats, it equals plain steps, and its seeds are summed up."""

import numpy as np
import polars as pl
import pytest
import torch

from models.encoder.config import EncoderConfig
from models.errors import EvaluationError
from models.evaluation.bootstrap import BootstrapConfig
from models.evaluation.config import FinetuneConfig
from models.evaluation.correlation import spearman
from models.evaluation.finetune import GradedPairs, finetune, predict
from models.evaluation.repeated import over_seeds
from storage.declarations import DATASETS
from storage.schemas import SCORES
from storage.weights import resolve_model
from tasks.evaluation.sets import resolve_scored_set
from tasks.evaluation.supervised import score_supervised, summarise_seeds
from tasks.site import Site
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, tiny_encoder, write_tiny

ONE = ORIGINALS * 3
TWO = BACK_DE + BACK_DE[1:] + BACK_DE[:1] + BACK_FR
GOLD = np.array([1.0] * 4 + [0.0, 0.1, 0.2, 0.3] + [0.9] * 4)
PAIRS = GradedPairs("pairs", ONE, TWO, GOLD)
CONFIG = FinetuneConfig(batch_size=4, epochs=30, lr=3e-3)


def test_it_learns_to_rank(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path)
    before = spearman(predict(encoder, tokenizer, PAIRS), GOLD)
    finetune(encoder, tokenizer, PAIRS, CONFIG, seed=0)
    assert spearman(predict(encoder, tokenizer, PAIRS), GOLD) > max(0.85, before)
    assert not encoder.training


def test_a_seed_decides_the_result(tmp_path):
    def cosines(seed: int) -> np.ndarray:
        encoder, tokenizer = tiny_encoder(tmp_path)
        return predict(finetune(encoder, tokenizer, PAIRS, CONFIG, seed=seed), tokenizer, PAIRS)

    np.testing.assert_array_equal(cosines(1), cosines(1))
    assert not np.array_equal(cosines(1), cosines(2))


def test_a_full_batch_without_dropout_is_plain_adamw_on_the_squared_error(tmp_path):
    config = FinetuneConfig(batch_size=12, epochs=3, lr=1e-3, weight_decay=0.0, warmup=0.0, clip=1e9)
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    found = predict(finetune(encoder, tokenizer, PAIRS, config, seed=0), tokenizer, PAIRS)

    plain, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    optimizer = torch.optim.AdamW(plain.parameters(), eps=1e-6, weight_decay=0.0)
    for step in range(3):
        optimizer.param_groups[0]["lr"] = 1e-3 * (3 - step) / 3
        batch = [tokenizer(texts, padding=True, return_tensors="pt") for texts in (ONE, TWO)]
        one, two = (plain(side["input_ids"], side["attention_mask"]) for side in batch)
        loss = (torch.cosine_similarity(one, two) - torch.from_numpy(GOLD).float()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(found, predict(plain, tokenizer, PAIRS), atol=2e-4)


def test_the_best_dev_epoch_is_kept(tmp_path):
    """A dev set that wants the opposite of what is learnt: later epochs are worse, so the first one stays."""
    against = GradedPairs("against", ONE, TWO, 1 - GOLD)
    encoder, tokenizer = tiny_encoder(tmp_path)
    first = finetune(encoder, tokenizer, PAIRS, CONFIG, seed=0, dev=against)
    kept = spearman(predict(first, tokenizer, PAIRS), GOLD)
    encoder, tokenizer = tiny_encoder(tmp_path)
    assert kept < spearman(predict(finetune(encoder, tokenizer, PAIRS, CONFIG, seed=0), tokenizer, PAIRS), GOLD)


def test_both_orders_are_twice_the_steps(tmp_path):
    seen = []
    for both in (False, True):
        encoder, tokenizer = tiny_encoder(tmp_path)
        config = CONFIG.model_copy(update={"both_orders": both, "epochs": 1})
        finetune(
            encoder, tokenizer, PAIRS, config, seed=0, on_progress=lambda done, total, _: seen.append((done, total))
        )
    assert seen == [*((step, 3) for step in range(1, 4)), *((step, 6) for step in range(1, 7))]


def test_pairs_that_cannot_be_learnt_are_refused(tmp_path):
    with pytest.raises(EvaluationError, match="p: 2 and 1 sentences with 2 scores"):
        GradedPairs("p", ["a", "b"], ["c"], np.array([0.0, 1.0]))
    with pytest.raises(EvaluationError, match=r"p: row 1 has the scaled score 1.2"):
        GradedPairs("p", ["a", "b"], ["c", "d"], np.array([0.0, 1.2]))
    with pytest.raises(EvaluationError, match="p: row 0 has the scaled score nan"):
        GradedPairs("p", ["a"], ["b"], np.array([np.nan]))
    encoder, tokenizer = tiny_encoder(tmp_path)
    with pytest.raises(EvaluationError, match="none: no pairs to learn from"):
        finetune(encoder, tokenizer, GradedPairs("none", [], [], np.zeros(0)), CONFIG, seed=0)


def rows(values: dict[int, float], metric: str = "spearman") -> pl.DataFrame:
    fixed = {"model": "m", "dataset": "stsb", "subset": "all", "split": "test", "metric": metric, "n": 9}
    table = [
        {
            **fixed,
            "protocol": "supervised",
            "value": value,
            "ci_low": 0.0,
            "ci_high": 1.0,
            "seed": seed,
            "checkpoint": "",
        }
        for seed, value in values.items()
    ]
    return pl.DataFrame(table).select(SCORES.names()).cast(SCORES)


def test_seeds_are_summed_up_as_mean_and_standard_deviation():
    found = {row["protocol"]: row for row in over_seeds(rows({0: 0.80, 1: 0.82, 2: 0.87})).to_dicts()}
    assert found["supervised-mean"]["value"] == pytest.approx(0.83)
    assert found["supervised-sd"]["value"] == pytest.approx(np.std([0.80, 0.82, 0.87], ddof=1))
    # Student's t with 2 degrees of freedom: 4.3027
    assert found["supervised-mean"]["ci_high"] == pytest.approx(0.83 + 4.3027 * 0.0360555 / 3**0.5, abs=1e-4)
    assert found["supervised-mean"]["n"] == 3
    assert found["supervised-sd"]["ci_low"] is None


def test_one_seed_and_uneven_seeds_are_refused():
    with pytest.raises(EvaluationError, match="1 seed, expected 2 or more"):
        over_seeds(rows({0: 0.8}))
    with pytest.raises(EvaluationError, match="has 1 of 2 seeds"):
        over_seeds(pl.concat([rows({0: 0.8, 1: 0.9}), rows({0: 0.7}, metric="pearson")]))


def test_stages_score_each_seed_and_sum_them_up(tmp_path):
    (tmp_path / "mirror" / "stsb").mkdir(parents=True)
    frame = pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": 5 * GOLD})
    for split, pairs in DATASETS["stsb"].pairs.items():  # as many as the papers count, else they are refused
        repeated = frame[[row % frame.height for row in range(pairs)]]
        repeated.write_parquet(tmp_path / "mirror" / "stsb" / f"{split}.parquet")
    site = Site(store=str(tmp_path / "store"), mirror=str(tmp_path / "mirror"), device="cpu", threads=1)
    arguments = {
        "encoder": resolve_model(str(write_tiny(tmp_path / "tiny"))),
        "model": "tiny",
        "checkpoint": "",
        "sets": tuple(resolve_scored_set(site, f"stsb/{split}") for split in ("train", "dev", "test")),
        "network": EncoderConfig(model="tiny", max_length=24),
        "config": FinetuneConfig(batch_size=128, epochs=1, lr=3e-3),
        "bootstrap": BootstrapConfig(resamples=100),
    }
    refs = tuple(score_supervised.run(site, {**arguments, "seed": seed}) for seed in (0, 1))
    assert len({ref.key for ref in refs}) == 2
    single = site.open_store().scan(refs[1]).collect()
    assert single["seed"].unique().to_list() == [1]
    assert single.filter(metric="spearman")["value"].item() > 0.8
    summary = site.open_store().scan(summarise_seeds.run(site, {"scores": refs})).collect()
    assert set(summary["protocol"]) == {"supervised-mean", "supervised-sd"}
