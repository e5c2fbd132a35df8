"""In-batch negatives, the term that BSL+ adds to equation 2, restated in float64: loss, gradients, label."""

import pytest
import torch

from bsl.models.objectives.bsl import BSL
from bsl.models.objectives.bsl_config import BSLConfig
from tests.tiny_encoder import pairs_of, tiny_encoder

TEMPERATURE = 0.3


def cosine(a, b):
    return (a @ b) / torch.sqrt((a @ a) * (b @ b))


def restated(config, h, z, t):
    """Return equation 2 at the configured scale, plus the weighted mean of InfoNCE in both directions."""
    rows = range(len(h[0]))
    loss = sum(-cosine(z[v][i], t[1 - v][i]) for v in range(2) for i in rows) / (2 * len(rows))
    loss = 4 + 4 * loss if config.loss_scale == "released" else loss
    contrast = 0.0
    for v in range(2):
        for i in rows:
            powers = [torch.exp(cosine(h[v][i], h[1 - v][j]) / TEMPERATURE) for j in rows]
            contrast = contrast - torch.log(powers[i] / sum(powers)) / (2 * len(rows))
    return loss + config.contrastive_weight * contrast


@pytest.mark.parametrize("scale", ["paper", "released"])
@pytest.mark.parametrize("norm", ["none", "center"])
def test_loss_and_gradients_with_negatives_equal_the_restated_formula(tmp_path, scale, norm):
    encoder, tokenizer = tiny_encoder(tmp_path, "bert", dropout=0.0)
    pairs = pairs_of(tokenizer)
    torch.manual_seed(1)
    config = BSLConfig(k=2, contrastive_weight=0.7, temperature=TEMPERATURE, loss_scale=scale, target_norm=norm)
    objective = BSL(encoder, config).double()
    with torch.no_grad():
        for parameter in objective.target.parameters():  # away from the online network, as after some steps
            parameter.add_(0.1 * torch.randn_like(parameter))
    views = [pairs.tokens.padded(view) for view in (pairs.view_1, pairs.view_2)]
    h = [objective.online(*view) for view in views]
    z = [objective.predictor(h[0]), objective.predictor(h[1], 2)]
    raw = torch.cat([objective.target(*view) for view in views])
    t = (raw - raw.mean(dim=0) if norm == "center" else raw).detach().chunk(2)
    plain = restated(config, h, z, t)
    parameters = objective.learning_parameters()
    expected = torch.autograd.grad(plain, parameters, allow_unused=True)
    loss = objective(pairs)
    assert loss.item() == pytest.approx(plain.item(), abs=1e-9)
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    both = [(a, b) for a, b in zip(expected, found, strict=True) if a is not None]
    assert max((a - b).abs().max().item() for a, b in both) <= 1e-9
    assert max(a.abs().max().item() for a, _ in both) > 1e-3


def test_config_label_names_the_negatives():
    assert BSLConfig(target_norm="center").label == "BSL"
    assert BSLConfig(contrastive_weight=0.1).label == "BSL + in-batch negatives"
