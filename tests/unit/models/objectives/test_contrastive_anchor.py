"""Contrastive training anchored to the start encoder: the restated term and its gradients."""

import pytest
import torch

from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.objectives.objective import Batch
from tests.tiny_encoder import add_noise, pairs_of, tiny_encoder

TEMPERATURE, WEIGHT = 0.2, 3.0
PLAIN, ANCHORED = (ContrastiveConfig(temperature=TEMPERATURE, anchor_weight=weight) for weight in (0.0, WEIGHT))


@pytest.fixture
def setting(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    pairs = pairs_of(tokenizer)
    return encoder.double(), Batch(pairs.tokens, pairs.view_1, pairs.view_2)


def order(h):
    """Return each row's softmax over its cosines with the other rows."""
    u = h / (h**2).sum(1, keepdim=True).sqrt()
    others = [torch.stack([u[i] @ u[j] for j in range(4) if j != i]) for i in range(4)]
    return [(cosines / TEMPERATURE).softmax(0) for cosines in others]


def test_anchor_term_is_the_divergence_from_the_start_encoder(setting):
    encoder, batch = setting
    start = [encoder.embed(batch.tokens, rows, 512).detach() for rows in (batch.view_1, batch.view_2)]
    objective = ANCHORED.build(encoder)
    add_noise(objective.online)
    held = 0.0
    for before, rows in zip(start, (batch.view_1, batch.view_2), strict=True):
        now = objective.online.embed(batch.tokens, rows, 512).detach()
        held += sum(float((p * (p / q).log()).sum()) for p, q in zip(order(before), order(now), strict=True)) / 4 / 2
    plain = PLAIN.build(objective.online)(batch).item()
    assert held > 1e-3
    assert objective(batch).item() == pytest.approx(plain + WEIGHT * held, abs=1e-9)


def test_anchor_term_starts_at_zero_and_anchor_is_frozen(setting):
    encoder, batch = setting
    objective = ANCHORED.build(encoder)
    loss = objective(batch)
    assert loss.item() == pytest.approx(PLAIN.build(encoder)(batch).item(), abs=1e-12)
    loss.backward()
    assert len(objective.learning_parameters()) == len(list(encoder.parameters()))
    assert not objective.target.training
    assert set(dict(objective.named_children())) == {"online", "target"}
    add_noise(objective.online)
    assert objective(batch) > PLAIN.build(objective.online)(batch)
