"""Cosine regression with an anchor, and pairs without a score: the restated loss and its gradients."""

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.objective import Batch
from bsl.models.objectives.supervised_config import RegressionConfig
from bsl.models.training.loop import train
from tests.tiny_encoder import BACK_DE, ORIGINALS, add_noise, pairs_of, tiny_encoder, write_tiny
from tests.tiny_training import CONFIG

WEIGHT = 3.0
PLAIN, REHEARSED = RegressionConfig(), RegressionConfig(anchor_weight=WEIGHT)
NAN = float("nan")


@pytest.fixture
def setting(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    pairs = pairs_of(tokenizer)
    return encoder.double(), pairs


def batch_of(pairs, scores):
    return Batch(pairs.tokens, pairs.view_1, pairs.view_2, {"score": np.array(scores, np.float32)})


def cosines(first, second):
    return (first * second).sum(1) / (first.norm(dim=1) * second.norm(dim=1))


def test_loss_of_scored_and_unscored_pairs_equals_its_restatement(setting):
    encoder, pairs = setting
    batch = batch_of(pairs, [0.5, NAN, 1.0, NAN])
    before = [encoder.embed(batch.tokens, rows, 512).detach() for rows in (batch.view_1, batch.view_2)]
    objective = REHEARSED.build(encoder)
    add_noise(objective.online)
    after = [objective.online.embed(batch.tokens, rows, 512).detach() for rows in (batch.view_1, batch.view_2)]
    error = (cosines(*after) - torch.tensor([0.5, 0.0, 1.0, 0.0])) ** 2
    change = sum(1 - cosines(*sides) for sides in zip(before, after, strict=True)) / 2
    expected = (error[0] + error[2] + WEIGHT * (change[0] + change[2]) + change[1] + change[3]) / 4
    assert change.min() > 1e-3
    assert objective(batch).item() == pytest.approx(expected.item(), abs=1e-7)


def test_unscored_pairs_add_nothing_before_the_first_step_and_give_finite_gradients(setting):
    encoder, pairs = setting
    objective = REHEARSED.build(encoder)
    assert objective(batch_of(pairs, [NAN] * 4)).item() == pytest.approx(0, abs=1e-9)
    objective(batch_of(pairs, [0.5, NAN, NAN, NAN])).backward()
    gradients = [weight.grad for weight in objective.online.parameters() if weight.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_scored_pairs_start_at_the_plain_loss_and_only_an_anchor_is_saved(setting):
    encoder, pairs = setting
    batch = batch_of(pairs, [0.5, 0.25, 1.0, 0.0])
    plain, rehearsed = (config.build(encoder) for config in (PLAIN, REHEARSED))
    assert rehearsed(batch).item() == pytest.approx(plain(batch).item(), abs=1e-7)
    assert set(dict(rehearsed.named_children())) == {"online", "target"}
    assert set(dict(plain.named_children())) == {"online"}
    assert not rehearsed.train().target.training


def test_training_preserves_unscored_sentences_and_refuses_them_without_an_anchor(tmp_path):
    encoder = SentenceEncoder.load(write_tiny(tmp_path, dropout=0.0), EncoderConfig(model="tiny"))
    pairs = pl.DataFrame(
        {
            "text_1": [ORIGINALS[0], ORIGINALS[1], *BACK_DE],
            "text_2": [ORIGINALS[1], ORIGINALS[2], *BACK_DE[::-1]],
            "score": pl.Series([0.0, 0.0, None, None, None, None], dtype=pl.Float32),
        }
    )
    start = encoder.encode(BACK_DE)

    def change(pairs, weight):
        config = CONFIG.model_copy(
            update={
                "objective": RegressionConfig(anchor_weight=weight),
                "lr": 1e-3,
                "batch_size": len(pairs),
                "max_steps": 20,
                "epochs": 20,
                "select": "last",
                "warmup": 0.0,
            }
        )
        after = encoder.with_network(train(pairs, encoder, config).encoder).encode(BACK_DE)
        return 1 - cosines(torch.tensor(start), torch.tensor(after)).mean().item()

    assert change(pairs, 1e-6) < 0.5 * change(pairs.drop_nulls("score"), 0.0)
    with pytest.raises(TrainingError, match="score of pair 2 is null"):
        change(pairs, 0.0)
