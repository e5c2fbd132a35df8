"""Matryoshka: the loss summed over prefixes, restated in float64 with truncated vectors and networks."""

import math

import numpy as np
import pytest
import torch

from bsl.models.errors import TrainingError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.objectives.supervised_config import RegressionConfig, SCLConfig
from tests.tiny_encoder import WIDTH, every_field, pairs_of, tiny_encoder

CUTS, TEMPERATURE = (4, 10), 0.2


@pytest.fixture
def setting(tmp_path):
    """Return a float64 encoder without dropout, and a batch of pairs with every field that objectives need."""
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    teacher = np.random.default_rng(1).normal(size=(4, 5))
    return encoder.double(), pairs_of(tokenizer, **{**every_field(), "teacher": teacher})


def vectors(encoder, batch):
    return [encoder.embed(batch.tokens, rows, 512) for rows in (batch.view_1, batch.view_2)]


def cosine(a, b):
    return (a * b).sum(-1) / ((a**2).sum(-1) * (b**2).sum(-1)).sqrt()


def cosines(a, b):
    return cosine(a[:, None], b[None])


def contrast(h1, h2, _):
    both, rows = torch.cat([h1, h2]), len(h1)
    logits = cosines(both, both) / TEMPERATURE
    losses = []
    for row in range(2 * rows):
        others = [n for n in range(2 * rows) if n != row]
        losses.append(logits[row, others].logsumexp(0) - logits[row, (row + rows) % (2 * rows)])
    return sum(losses) / len(losses)


def regression(h1, h2, made):
    return ((cosine(h1, h2) - torch.as_tensor(made.batch.columns["score"])) ** 2).mean()


def bootstrap(h1, h2, made):
    """Return equation 2 with the predictor reduced to the rows and columns of the first dimensions."""
    kept, layers = h1.shape[1], list(made.objective.predictor.blocks[0])
    targets = [x[:, :kept].detach() for x in vectors(made.objective.target, made.batch)]

    def predict(h):
        first, second, last = (layer for layer in layers if isinstance(layer, torch.nn.Linear))
        h = torch.relu(h @ first.weight[:, :kept].T + first.bias)
        h = torch.relu(h @ second.weight.T + second.bias)
        return h @ last.weight[:kept].T + last.bias[:kept]

    return -0.5 * (cosine(predict(h1), targets[1]) + cosine(predict(h2), targets[0])).mean()


def dropout_contrast(h1, _, made):
    """Return SimCSE's loss without dropout in the transformer: both views are equal."""
    kept, dense = h1.shape[1], made.objective.head[0]
    z = torch.tanh(h1 @ dense.weight[:kept, :kept].T + dense.bias[:kept])
    logits = cosines(z, z) / TEMPERATURE
    return (logits.logsumexp(1) - logits.diagonal()).mean()


def divergence(h1, h2, made):
    others = ~torch.eye(4, dtype=torch.bool)
    t = torch.as_tensor(made.batch.columns["teacher"])
    p = (cosines(t, t)[others].view(4, 3) / 0.05).softmax(1)
    losses = []
    for h in (h1, h2):
        q = (cosines(h, h)[others].view(4, 3) / TEMPERATURE).softmax(1)
        losses.append((p * (p / q).log()).sum(1).mean())
    return sum(losses) / 2


class Made:
    def __init__(self, objective, batch):
        self.objective, self.batch = objective, batch


CASES = [
    (ContrastiveConfig(temperature=TEMPERATURE, dims=CUTS), contrast),
    (RegressionConfig(dims=CUTS), regression),
    (BSLConfig(k=2, norm="none", dims=CUTS), bootstrap),
    (SimCSEConfig(temperature=TEMPERATURE, dims=CUTS), dropout_contrast),
    (DistilConfig(student_temperature=TEMPERATURE, dims=CUTS), divergence),
]


@pytest.mark.parametrize(("config", "restated"), CASES, ids=[case[0].name for case in CASES])
def test_loss_and_gradients_equal_the_sum_over_truncated_vectors(setting, config, restated):
    encoder, batch = setting
    if config.name == "simcse":
        encoder.heard = torch.nn.Dropout(0.5)  # SimCSE requires dropout; no vector passes through this module
    torch.manual_seed(2)
    made = Made(config.build(encoder).double(), batch)
    loss = made.objective(batch)
    loss.backward()
    learning = made.objective.learning_parameters()
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learning]
    h1, h2 = vectors(made.objective.online, batch)
    expected = sum(restated(h1[:, :kept], h2[:, :kept], made) for kept in (WIDTH, *CUTS))
    assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
    found = torch.autograd.grad(expected, learning, allow_unused=True)
    for gradient, other in zip(gradients, found, strict=True):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient) if other is None else other, atol=1e-9, rtol=0)


PLUS = BSLConfig(k=2, norm="none", contrastive_weight=0.1)


@pytest.mark.parametrize(
    "config",
    [SCLConfig(), PLUS, ContrastiveConfig(anchor_weight=2.0)],
    ids=["scl", "BSL+", "anchored"],
)
def test_each_prefix_adds_its_own_loss_term(setting, config):
    """Each prefix adds its own term, independent of the other prefixes."""
    encoder, batch = setting

    def loss(*dims):
        torch.manual_seed(2)
        objective = config.model_copy(update={"dims": dims}).build(encoder).double()
        return objective(batch).item()

    whole, both = loss(), loss(*CUTS)
    assert both - whole == pytest.approx(sum(loss(kept) - whole for kept in CUTS), abs=1e-6)
    assert all(abs(loss(kept) - whole) > 1e-3 for kept in CUTS)


def test_loss_without_dims_equals_the_plain_objective(setting):
    encoder, batch = setting
    h1, h2 = vectors(encoder, batch)
    loss = ContrastiveConfig(temperature=TEMPERATURE).build(encoder)(batch).item()
    assert math.isclose(loss, contrast(h1, h2, None).item(), abs_tol=1e-9)


def test_dims_not_below_the_encoder_width_are_refused(setting):
    with pytest.raises(
        TrainingError, match=rf"dims contains \[{WIDTH}\], expected numbers below the encoder.s width {WIDTH}"
    ):
        ContrastiveConfig(dims=(4, WIDTH)).build(setting[0])


@pytest.mark.parametrize("fields", [{"queue": 8}, {"loss": "vectors"}])
def test_dims_conflict_with_queue_and_teacher_vectors(fields):
    with pytest.raises(ValueError, match=r"dims \[8\] cannot be combined with a queue or a teacher's vectors"):
        DistilConfig(dims=(8,), **fields)
