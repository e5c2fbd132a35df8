"""The terms that BSL+ adds to equation 2, restated in float64: losses, gradients, queue, resume, twenty steps."""

import math
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from models.objectives.bsl import BSL
from models.objectives.bsl_plus import jensen_shannon, list_mle, list_net
from models.objectives.config import BSLConfig
from models.objectives.info_nce import VectorQueue, info_nce
from tests.tiny_encoder import WIDTH, pairs_of, tiny_encoder

ASSETS = Path(__file__).parents[4] / "storage" / "assets"
OWN_T, TARGET_T, PLACES = 0.3, 0.2, 6
TERMS = [
    BSLConfig(ranking_weight=0.7, ranking=kind, ranking_temperature=OWN_T, ranking_target_temperature=TARGET_T)
    for kind in ("listnet", "listmle", "js")
] + [
    BSLConfig(target_contrastive_weight=0.7, temperature=OWN_T, queue=places, target_norm=norm)
    for places, norm in ((0, "none"), (PLACES, "center"))
]
ALL = BSLConfig(
    k=2,
    momentum=0.9,
    momentum_schedule="cosine",
    target_norm="standardize",
    target_dropout=True,
    contrastive_weight=0.1,
    target_contrastive_weight=0.1,
    queue=32,
    ranking_weight=0.1,
)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return dot(a, b) / torch.sqrt(dot(a, a) * dot(b, b))


def softmax(values, temperature):
    powers = [torch.exp(value / temperature) for value in values]
    return [power / sum(powers) for power in powers]


def restated_ranking(kind, s, t):
    """Return the ranking loss of a sentence's similarities s against the target's t."""
    if kind == "listmle":
        order = sorted(range(len(t)), key=lambda place: -t[place].item())
        powers = [torch.exp(s[place] / OWN_T) for place in order]
        return -sum(torch.log(power / sum(powers[place:])) for place, power in enumerate(powers))
    p, q = softmax(t, TARGET_T), softmax(s, OWN_T)
    if kind == "listnet":
        return -sum(a * torch.log(b) for a, b in zip(p, q, strict=True))
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return sum(sum(a * torch.log(a / m) for a, m in zip(side, middle, strict=True)) for side in (p, q)) / 2


def restated_lists(one, other):
    return [[cosine(one[i], other[j]) for j in range(len(other)) if j != i] for i in range(len(one))]


def restated_contrast(z, t, queue):
    total = 0.0
    for i in range(len(z)):
        shares = softmax([cosine(z[i], other) for other in [*t, *queue]], OWN_T)
        total = total - torch.log(shares[i])
    return total / len(z)


def restated(config, h, z, t, queue):
    """Return equation 2 plus the active term."""
    loss = sum(-cosine(z[v][i], t[1 - v][i]) for v in range(2) for i in range(len(z[0]))) / (2 * len(z[0]))
    if config.ranking_weight:
        pairs = [(restated_lists(h[v], h[1 - v]), restated_lists(t[v], t[1 - v])) for v in range(2)]
        each = [restated_ranking(config.ranking, s, g) for own, gold in pairs for s, g in zip(own, gold, strict=True)]
        return loss + config.ranking_weight * sum(each) / len(each)
    return loss + config.target_contrastive_weight * sum(restated_contrast(z[v], t[1 - v], queue) for v in range(2)) / 2


@pytest.mark.parametrize("config", TERMS, ids=lambda config: f"{config.label}-{config.ranking}-{config.queue}")
def test_loss_and_gradients_of_terms_equal_the_restated_formula(tmp_path, config):
    encoder, tokenizer = tiny_encoder(tmp_path, "bert", dropout=0.0)
    pairs = pairs_of(tokenizer)
    torch.manual_seed(1)
    objective = BSL(encoder, config.model_copy(update={"k": 2})).double()
    with torch.no_grad():
        for parameter in objective.target.parameters():  # away from the online network, as after some steps
            parameter.add_(0.1 * torch.randn_like(parameter))
    objective.queue.push(torch.randn(4, WIDTH, dtype=torch.float64))
    queue = objective.queue.vectors[:4].clone() if config.queue else []
    views = [pairs.tokens.padded(view) for view in (pairs.view_1, pairs.view_2)]
    h = [objective.online(*view) for view in views]
    z = [objective.predictor(h[0]), objective.predictor(h[1], 2)]
    raw = torch.cat([objective.target(*view) for view in views])
    t = (raw - raw.mean(dim=0) if config.target_norm == "center" else raw).detach().chunk(2)
    plain = restated(config, h, z, t, queue)
    parameters = objective.learning_parameters()
    expected = torch.autograd.grad(plain, parameters, allow_unused=True)
    loss = objective(pairs, 24)
    assert loss.item() == pytest.approx(plain.item(), abs=1e-9)
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    both = [(a, b) for a, b in zip(expected, found, strict=True) if a is not None]
    assert max((a - b).abs().max().item() for a, b in both) <= 1e-9
    assert max(a.abs().max().item() for a, _ in both) > 1e-3
    newest = torch.nn.functional.normalize(torch.cat(t), dim=-1)[-PLACES:]
    held = objective.queue.vectors
    assert len(held) == config.queue
    assert all(any(torch.allclose(vector, row) for row in held) for vector in newest[: config.queue])


def test_ranking_losses_equal_hand_computed_values():
    """Two candidates: the target prefers the first by ln 3 at temperature 1, the online encoder the second by ln 3."""
    s, t = torch.tensor([[0.0, math.log(3)]]), torch.tensor([[math.log(3), 0.0]])
    assert list_net(s, t, 1.0, 1.0).item() == pytest.approx(-(0.75 * math.log(0.25) + 0.25 * math.log(0.75)))
    assert list_mle(s, t, 1.0, 1.0).item() == pytest.approx(-math.log(0.25))
    assert jensen_shannon(s, t, 1.0, 1.0).item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert jensen_shannon(t, t, 1.0, 1.0).item() == pytest.approx(0, abs=1e-7)
    assert list_mle(t, t, 0.01, 1.0).item() == pytest.approx(0, abs=1e-7)


def test_empty_queue_slots_are_not_used_as_negatives():
    z, t = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    queue = VectorQueue(8, 3).double()
    without = info_nce(z, t, 0.1)
    assert info_nce(z, t, 0.1, queue.vectors).item() == pytest.approx(without.item())
    queue.push(t)
    assert info_nce(z, t, 0.1, queue.vectors).item() > without.item()


def test_queue_without_target_contrastive_weight_is_refused():
    with pytest.raises(ValidationError, match=r"queue=64 has no effect.* Set target_contrastive_weight"):
        BSLConfig(queue=64)


def test_config_label_lists_the_active_terms():
    assert BSLConfig(target_norm="center").label == "BSL"
    assert ALL.label == "BSL + in-batch negatives + target negatives + ranking"
