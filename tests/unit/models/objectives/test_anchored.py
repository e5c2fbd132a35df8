"""Objectives anchored to the start encoder: restated terms, pairs without a score, and what is saved."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.objectives.supervised_config import RegressionConfig
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import BACK_DE, ORIGINALS, add_noise, pairs_of, tiny_encoder

TEMPERATURE, WEIGHT = 0.2, 3.0
NAN = float("nan")
PLAIN = {"contrastive": ContrastiveConfig(temperature=TEMPERATURE), "regression": RegressionConfig()}
ANCHORED = {name: config.model_copy(update={"anchor_weight": WEIGHT}) for name, config in PLAIN.items()}


@pytest.fixture
def setting(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    return encoder.double(), lambda *scores: pairs_of(tokenizer, score=np.array(scores, np.float32))


def vectors(encoder, batch):
    return [encoder.embed(batch.tokens, rows, 512).detach() for rows in (batch.view_1, batch.view_2)]


def order(h):
    """Return each row's softmax over its cosines with the other rows."""
    cosines = cosine_similarity(h[:, None], h[None], dim=-1)[~torch.eye(4).bool()].view(4, 3)
    return (cosines / TEMPERATURE).softmax(1)


def test_contrastive_anchor_is_the_divergence_from_the_start_encoder(setting):
    encoder, batch = setting[0], setting[1](0, 0, 0, 0)
    before, objective = vectors(encoder, batch), ANCHORED["contrastive"].build(encoder)
    add_noise(objective.online)
    orders = [(order(old), order(new)) for old, new in zip(before, vectors(objective.online, batch), strict=True)]
    held = sum((p * (p / q).log()).sum(1).mean().item() for p, q in orders) / 2
    plain = PLAIN["contrastive"].build(objective.online)(batch).item()
    assert held > 1e-3
    assert objective(batch).item() == pytest.approx(plain + WEIGHT * held, abs=1e-9)


def test_regression_anchor_is_the_distance_from_the_start_encoder_also_of_unscored_pairs(setting):
    encoder, batch = setting[0], setting[1](0.5, NAN, 1.0, NAN)
    before, objective = vectors(encoder, batch), ANCHORED["regression"].build(encoder)
    add_noise(objective.online)
    after = vectors(objective.online, batch)
    error = (cosine_similarity(*after) - torch.tensor([0.5, 0.0, 1.0, 0.0])) ** 2
    change = sum(1 - cosine_similarity(*sides) for sides in zip(before, after, strict=True)) / 2
    expected = (error[0] + error[2] + WEIGHT * (change[0] + change[2]) + change[1] + change[3]) / 4
    assert change.min() > 1e-3
    loss = objective(batch)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-7)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in objective.learning_parameters() if p.grad is not None)


def test_each_text_once_has_the_loss_and_gradient_of_each_text_as_often_as_it_occurs(setting, tmp_path):
    encoder, tokenizer = setting[0], tiny_encoder(tmp_path)[1]
    texts = [*ORIGINALS, *ORIGINALS[:2]], [*BACK_DE[:3], *ORIGINALS[:3]]  # 12 rows of 7 texts
    batch = pairs_of(tokenizer, *texts, score=np.array([0.5, NAN, 1.0, 0.0, 1.0, 0.25], np.float32))
    objective = ANCHORED["regression"].build(encoder)
    add_noise(objective.online)
    often = objective(batch)
    objective.config = objective.config.model_copy(update={"each_text_once": True})
    assert_equal_losses(objective(batch), often, objective.learning_parameters(), 1e-9, 1e-9)


def test_each_text_once_has_one_dropout_mask_in_a_batch(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.5)
    batch = pairs_of(tokenizer, ORIGINALS, [ORIGINALS[1], *BACK_DE[1:]], score=np.zeros(4, np.float32))
    objective = ANCHORED["regression"].build(encoder)
    often, once = (objective.stacked_vectors(batch, each_text_once=each)[0].detach() for each in (False, True))
    assert (often[1] != often[4]).any()
    assert (once[1] == once[4]).all()


@pytest.mark.parametrize("name", PLAIN)
def test_loss_starts_at_the_plain_loss_and_the_anchor_is_frozen(setting, name):
    encoder, batch = setting[0], setting[1](0.5, 0.25, 1.0, 0.0)
    plain, anchored = PLAIN[name].build(encoder), ANCHORED[name].build(encoder)
    assert anchored(batch).item() == pytest.approx(plain(batch).item(), abs=1e-7)
    assert set(dict(anchored.named_children())) == {"online", "target"}
    assert set(dict(plain.named_children())) == {"online"}
    assert len(anchored.learning_parameters()) == len(list(encoder.parameters()))
    assert not anchored.train().target.training
