"""BSL equals equations 1 to 4 of the paper, restated in float64: loss, gradients, ten steps."""

import copy

import pytest
import torch

from bsl.models.objectives.bsl import BSL
from bsl.models.objectives.bsl_config import BSLConfig
from tests.tiny_encoder import pairs_of, tiny_encoder

RATE, STEPS, TOLERANCE = 0.05, 10, 1e-9


def mlp(h, weights, kind):
    """p_θ: linear, batch norm (statistics of this view), ReLU; `released` has three blocks with one norm each."""
    order = ["linear", "norm", "relu", "linear", *(["norm"] if kind == "paper" else []), "relu", "linear"]
    for block in range(1 if kind == "paper" else 3):
        for place, what in enumerate(order):
            if what == "relu":
                h = torch.where(h > 0, h, torch.zeros_like(h))
                continue
            w, b = weights[f"blocks.{block}.{place}.weight"], weights[f"blocks.{block}.{place}.bias"]
            if what == "linear":
                h = h @ w.T + b
            else:
                mean = h.sum(0) / len(h)
                variance = ((h - mean) ** 2).sum(0) / len(h)
                h = (h - mean) / (variance + 1e-5) ** 0.5 * w + b
    return h


def distance(z, h):
    """Equation 1."""
    return -((z / (z**2).sum(1, keepdim=True) ** 0.5) * (h / (h**2).sum(1, keepdim=True) ** 0.5)).sum(1)


class Restated:
    """θ, p and ξ as dictionaries of float64 tensors; one padded pass per view."""

    def __init__(self, bootstrap, kind):
        self.encoder, self.kind = copy.deepcopy(bootstrap.online), kind
        self.theta = {n: p.detach().clone().requires_grad_() for n, p in bootstrap.online.named_parameters()}
        self.p = {n: p.detach().clone().requires_grad_() for n, p in bootstrap.predictor.named_parameters()}
        self.xi = {n: p.detach().clone() for n, p in bootstrap.target.named_parameters()}

    def f(self, weights, batch):
        return torch.func.functional_call(self.encoder, weights, batch)

    def loss(self, x1, x2):
        """Equation 2."""
        z1, z2 = (mlp(self.f(self.theta, x), self.p, self.kind) for x in (x1, x2))
        h1, h2 = (self.f(self.xi, x).detach() for x in (x1, x2))
        return (0.5 * distance(z1, h2) + 0.5 * distance(z2, h1)).sum() / len(z1)

    def gradients(self, loss):
        names = [("theta", n) for n in self.theta] + [("p", n) for n in self.p]
        found = torch.autograd.grad(loss, [getattr(self, k)[n] for k, n in names], allow_unused=True)
        return {key: g for key, g in zip(names, found, strict=True) if g is not None}

    def step(self, gradients, momentum):
        """Equation 3 with a plain descent step, equation 4."""
        for (kind, name), gradient in gradients.items():
            weights = getattr(self, kind)
            weights[name] = (weights[name] - RATE * gradient).detach().requires_grad_()
        for name, xi in self.xi.items():
            self.xi[name] = momentum * xi + (1 - momentum) * self.theta[name].detach()


@pytest.fixture(params=["paper", "released"])
def kind(request):
    return request.param


@pytest.fixture
def setting(tmp_path, kind):
    encoder, tokenizer = tiny_encoder(tmp_path, "bert", dropout=0.0)
    pairs = pairs_of(tokenizer)
    torch.manual_seed(1)
    bootstrap = BSL(encoder, BSLConfig(predictor=kind, k=2, momentum=0.9)).double()
    # Move the target away from the online network, as after some steps.
    with torch.no_grad():
        for p in bootstrap.target.parameters():
            p.add_(0.02 * torch.randn_like(p))
    return bootstrap, Restated(bootstrap, kind), pairs


def batches(pairs):
    return pairs.tokens.padded(pairs.view_1), pairs.tokens.padded(pairs.view_2)


def package_loss(bootstrap, pairs):
    return bootstrap(pairs)


def test_loss_equals_equation_2(setting):
    bootstrap, restated, pairs = setting
    assert package_loss(bootstrap, pairs).item() == pytest.approx(restated.loss(*batches(pairs)).item(), abs=TOLERANCE)


def test_gradients_reach_online_and_predictor_and_stop_at_the_target(setting):
    bootstrap, restated, pairs = setting
    package_loss(bootstrap, pairs).backward()
    expected = restated.gradients(restated.loss(*batches(pairs)))
    modules = {"theta": bootstrap.online, "p": bootstrap.predictor}
    found = {(kind, n): p.grad for kind, m in modules.items() for n, p in m.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    assert max((found[key] - expected[key]).abs().max().item() for key in expected) <= TOLERANCE
    assert max(g.abs().max().item() for g in found.values()) > 1e-4
    assert all(p.grad is None and not p.requires_grad for p in bootstrap.target.parameters())


def test_ten_training_steps_equal_equations_3_and_4(setting):
    bootstrap, restated, pairs = setting
    descent = torch.optim.SGD(bootstrap.learning_parameters(), lr=RATE)
    before = {n: p.detach().clone() for n, p in bootstrap.target.named_parameters()}
    for _ in range(STEPS):
        restated.step(restated.gradients(restated.loss(*batches(pairs))), 0.9)
        descent.zero_grad()
        package_loss(bootstrap, pairs).backward()
        descent.step()
        bootstrap.update_target(0.9)
    for module, expected in ((bootstrap.online, restated.theta), (bootstrap.target, restated.xi)):
        assert max((p - expected[n]).abs().max().item() for n, p in module.named_parameters()) <= TOLERANCE
    assert max((p - before[n]).abs().max().item() for n, p in bootstrap.target.named_parameters()) > 1e-3


def test_released_loss_is_4_plus_4_times_paper_loss(setting):
    bootstrap, _, pairs = setting
    paper = package_loss(bootstrap, pairs).item()
    bootstrap.config = bootstrap.config.model_copy(update={"loss_scale": "released"})
    assert package_loss(bootstrap, pairs).item() == pytest.approx(4 + 4 * paper, abs=TOLERANCE)
