"""BSL equals equations 1 to 4 of the paper and our terms, restated in float64; predictors have the published sizes."""

import copy

import pytest
import torch
from torch.nn.functional import cosine_similarity

from bsl.flows.recipes.paper import PAPER_TRAINING, RELEASED_TRAINING
from bsl.models.objectives.bsl import BSL, Predictor, TargetNorm, ema_update
from bsl.models.objectives.bsl_config import BSLConfig
from tests.tiny_encoder import pairs_of, tiny_encoder

RATE, STEPS = 0.05, 10
PLUS = {"contrastive_weight": 0.7, "temperature": 0.3}
CONFIGS = {
    "paper": BSLConfig(k=2, momentum=0.9),
    "released": BSLConfig(k=2, momentum=0.9, predictor="released", loss_scale="released"),
    "2021": BSLConfig(k=2, momentum=0.9, predictor="released-2021", norm="layer", target_norm="center", **PLUS),
    "plus": BSLConfig(k=2, momentum=0.9, norm="none", target_norm="standardize", loss_scale="released", **PLUS),
}
BLOCKS = {"paper": ([0], [0]), "released": ([0, 1, 2], [0, 1, 2]), "released-2021": ([0, 1, 2], [0, 1, 1])}


def normed(h, kind, weight, bias):
    dim = {"batch": 0, "layer": 1}[kind]
    mean = h.mean(dim, keepdim=True)
    variance = ((h - mean) ** 2).mean(dim, keepdim=True)
    return (h - mean) / (variance + 1e-5) ** 0.5 * weight + bias


def mlp(h, weights, config, view):
    """p_θ: linear, norm (statistics of this view), ReLU; `released` has three blocks with one norm each."""
    second = ["norm"] if config.predictor == "paper" else []
    for block in BLOCKS[config.predictor][view]:
        for place, what in enumerate(["linear", "norm", "relu", "linear", *second, "relu", "linear"]):
            name = f"blocks.{block}.{place}"
            if what == "relu":
                h = torch.where(h > 0, h, torch.zeros_like(h))
            elif what == "linear":
                h = h @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            elif config.norm != "none":
                h = normed(h, config.norm, weights[f"{name}.weight"], weights[f"{name}.bias"])
    return h


def contrast(h1, h2, temperature):
    """Return InfoNCE from view 1 to view 2."""
    cosines = cosine_similarity(h1[:, None], h2[None], dim=-1)
    return -(cosines / temperature).log_softmax(1).diagonal().mean()


class Restated:
    """The equations on copies of the three networks; one padded pass per view."""

    def __init__(self, bootstrap, config):
        self.networks, self.config, self.statistics = copy.deepcopy(bootstrap), config, None
        self.descent = torch.optim.SGD(self.networks.learning_parameters(), lr=RATE)

    def targets(self, views):
        t = [self.networks.target(*x).detach() for x in views]
        now = torch.cat(t).mean(0), torch.cat(t).var(0, unbiased=False)
        self.statistics = [0.9 * a + 0.1 * b for a, b in zip(self.statistics or now, now, strict=True)]
        mean, variance = self.statistics
        if self.config.target_norm == "none":
            return t
        return [x - mean if self.config.target_norm == "center" else (x - mean) / variance**0.5 for x in t]

    def loss(self, views):
        """Equation 2 at the configured scale, plus the weighted mean of InfoNCE in both directions."""
        h, weights = [self.networks.online(*x) for x in views], dict(self.networks.predictor.named_parameters())
        z, t = [mlp(x, weights, self.config, view) for view, x in enumerate(h)], self.targets(views)
        loss = -0.5 * (cosine_similarity(z[0], t[1]) + cosine_similarity(z[1], t[0])).mean()
        loss = 4 + 4 * loss if self.config.loss_scale == "released" else loss
        both = contrast(*h, self.config.temperature) + contrast(*h[::-1], self.config.temperature)
        return loss + self.config.contrastive_weight * both / 2

    def step(self, loss):
        """Equation 3 with a plain descent step, equation 4."""
        self.descent.zero_grad()
        loss.backward()
        self.descent.step()
        networks, momentum = self.networks, self.config.momentum
        for xi, theta in zip(networks.target.parameters(), networks.online.parameters(), strict=True):
            xi.data = momentum * xi.data + (1 - momentum) * theta.data


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_ten_training_steps_equal_equations_1_to_4(tmp_path, config):
    encoder, tokenizer = tiny_encoder(tmp_path, "bert", dropout=0.0)
    pairs = pairs_of(tokenizer)
    torch.manual_seed(1)
    bootstrap = BSL(encoder, config).double()
    with torch.no_grad():  # away from the online network, as after some steps
        for p in bootstrap.target.parameters():
            p.add_(0.02 * torch.randn_like(p))
    restated, descent = Restated(bootstrap, config), torch.optim.SGD(bootstrap.learning_parameters(), lr=RATE)
    before = {n: p.detach().clone() for n, p in bootstrap.named_parameters()}
    views = [pairs.tokens.padded(view) for view in (pairs.view_1, pairs.view_2)]
    for _ in range(STEPS):
        expected, loss = restated.loss(views), bootstrap(pairs)
        assert loss.item() == pytest.approx(expected.item(), abs=1e-8)
        restated.step(expected)
        descent.zero_grad()
        loss.backward()
        descent.step()
        bootstrap.update_target(config.momentum)
    found, expected = dict(bootstrap.named_parameters()), dict(restated.networks.named_parameters())
    assert max((found[name] - expected[name]).abs().max().item() for name in before) <= 1e-8
    for part in ("online", "predictor", "target"):
        assert max((found[name] - before[name]).abs().max() for name in before if name.startswith(part)) > 1e-3
    assert all(p.grad is None and not p.requires_grad for p in bootstrap.target.parameters())


def test_ema_update_copies_buffers_and_an_unused_norm_changes_nothing():
    online, target = torch.nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2)
    online(torch.randn(4, 2))
    ema_update(target, online, 0.999)
    assert int(target.num_batches_tracked) == 1
    torch.testing.assert_close(target.running_mean, online.running_mean)
    h = torch.randn(4, 3)
    assert TargetNorm(3, BSLConfig())(h) is h


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # 768·6144+6144 + 2·6144 + 6144²+6144 + 2·6144 + 6144·768+768
        (PAPER_TRAINING.objective, 47_223_552),
        # three times 768·7680+7680 + 2·7680 + 7680²+7680 + 7680·768+768; REFERENCE: about 212 M, twice BERT-base
        (RELEASED_TRAINING.objective, 212_431_104),
    ],
)
def test_preset_predictors_have_the_published_parameter_counts(config, expected):
    with torch.device("meta"):
        assert sum(p.numel() for p in Predictor(768, config).parameters()) == expected


@pytest.mark.parametrize(
    ("schedule", "step", "expected"), [("constant", 100, 0.99), ("cosine", 50, 0.995), ("cosine", 100, 1.0)]
)
def test_target_momentum_equals_hand_computed_values(tmp_path, schedule, step, expected):
    config = BSLConfig(k=1, momentum=0.99, momentum_schedule=schedule)
    assert BSL(tiny_encoder(tmp_path)[0], config).momentum(step, 100) == pytest.approx(expected)


def test_config_label_names_the_negatives():
    assert BSLConfig(target_norm="center").label == "BSL"
    assert BSLConfig(contrastive_weight=0.1).label == "BSL + in-batch negatives"
