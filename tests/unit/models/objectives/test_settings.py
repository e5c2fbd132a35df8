"""Each objective equals a float64 restatement of its publication and trains only its own parameters."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from bsl.models.errors import TrainingError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.config import OBJECTIVE_CONFIGS
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.info_nce import info_nce, nt_xent
from bsl.models.objectives.supervised import squared_error
from bsl.models.training.distributed import all_reduce_gradients
from tests.fake_processes import as_process
from tests.tiny_encoder import WIDTH, every_field, pairs_of, tiny_encoder

ROWS, COLUMNS, TEMPERATURE = 7, 5, 0.3
SMALL = {"k": 2, "norm": "layer", "target_norm": "center"}


def draw(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, ROWS, COLUMNS, generator=generator, dtype=torch.float64)


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def restated_nt_xent(h1, h2):
    """Chen et al. (2020), equation 1, over all 2n sentences."""
    every = h1.tolist() + h2.tolist()
    total = 0.0
    for i, one in enumerate(every):
        partner = (i + ROWS) % (2 * ROWS)
        scores = {j: math.exp(cosine(one, two) / TEMPERATURE) for j, two in enumerate(every) if j != i}
        assert len(scores) == 1 + 2 * (ROWS - 1)  # the positive and the paper's 2(n − 1) negatives
        total -= math.log(scores[partner] / sum(scores.values()))
    return total / (2 * ROWS)


def restated_simcse(z1, z2):
    """Gao et al. (2021), equation 4."""
    total = 0.0
    for i, one in enumerate(z1.tolist()):
        scores = [math.exp(cosine(one, two) / TEMPERATURE) for two in z2.tolist()]
        total -= math.log(scores[i] / sum(scores))
    return total / ROWS


@pytest.mark.parametrize("seed", range(3))
def test_contrastive_losses_equal_their_publications(seed):
    one, two = draw(2, seed)
    assert nt_xent(one, two, TEMPERATURE).item() == pytest.approx(restated_nt_xent(one, two), abs=1e-12)
    assert info_nce(one, two, TEMPERATURE).item() == pytest.approx(restated_simcse(one, two), abs=1e-12)
    assert info_nce(two, one, TEMPERATURE).item() != pytest.approx(restated_simcse(one, two), abs=1e-3)


@pytest.fixture
def encoder(tmp_path):
    return tiny_encoder(tmp_path, dropout=0.1)


class Unchanged(torch.nn.Module):
    """A predictor that returns its input, for either view."""

    def forward(self, h_BD, _view=1):
        return h_BD


def test_bsl_compares_view_1_with_target_2(encoder):
    """z₁ is compared with t₂ and z₂ with t₁; the predictor is the identity, so z = h."""
    objective = BSLConfig(k=1).build(encoder[0])
    objective.predictor = Unchanged()
    h1, h2, t1, t2 = draw(4, 5)
    one, two = (
        -sum(cosine(a, b) for a, b in zip(h.tolist(), t.tolist(), strict=True)) / ROWS / 2
        for h, t in ((h1, t2), (h2, t1))
    )
    assert objective.loss(h1, h2, t1, t2).item() == pytest.approx(one + two, abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVE_CONFIGS)
def test_gradients_reach_exactly_the_learning_parameters(encoder, name):
    config = OBJECTIVE_CONFIGS[name]()
    if "k" in type(config).model_fields:
        config = config.model_copy(update=SMALL)
    torch.manual_seed(0)
    objective = config.build(encoder[0], encoder[1])
    pairs = pairs_of(encoder[1], **every_field())
    objective(pairs).backward()
    learning = {id(p) for p in objective.learning_parameters()}
    for part, module in objective.named_children():
        for p in module.parameters():
            assert (id(p) in learning) == p.requires_grad == (part != "target")
            assert p.requires_grad or p.grad is None
    assert sum(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in encoder[0].parameters()) > 20
    state = {f"{part}.{n}" for part, module in objective.named_children() for n in module.state_dict()}
    assert state == set(objective.state_dict())  # the saved parts contain the whole state


@pytest.mark.parametrize("name", ["masked-lm", "tsdae", "cross-regression", "cross-softmax"])
def test_gradients_of_processes_sum_to_the_single_process_gradient(tmp_path, name):
    """Objectives that compute a share of the loss; the fake group communicates nothing, so each has its own part."""
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    torch.manual_seed(1)
    objective = OBJECTIVE_CONFIGS[name]().build(encoder, tokenizer).double()
    pairs = pairs_of(tokenizer, **every_field())

    def gradients():
        objective.zero_grad()
        np.random.seed(3)  # noqa: NPY002  the run draws masks from the global generator
        objective(pairs).backward()
        all_reduce_gradients(objective, objective.learning_parameters())
        return [None if p.grad is None else p.grad.clone() for p in objective.learning_parameters()]

    whole, shares = gradients(), []
    for rank in range(2):
        with as_process(rank, of=2):
            shares.append(gradients())
    found = [(sum(parts), expected) for expected, *parts in zip(whole, *shares, strict=True) if expected is not None]
    assert len(found) > 20
    for ours, expected in found:
        torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-9)


def test_every_objective_config_is_registered_with_name_and_citation():
    assert len({config.objective_class() for config in OBJECTIVE_CONFIGS.values()}) == len(OBJECTIVE_CONFIGS)
    assert all(config().name == name for name, config in OBJECTIVE_CONFIGS.items())
    assert all(config.title and config.citation.endswith(".") for config in OBJECTIVE_CONFIGS.values())


def test_simcse_encodes_the_first_view_twice_with_different_dropout(encoder):
    objective = SimCSEConfig(head="none", temperature=1.0).build(encoder[0])
    pairs = pairs_of(encoder[1], **every_field())

    def loss(view_2):
        torch.manual_seed(4)
        return objective(replace(pairs, view_2=view_2)).item()

    assert loss(pairs.view_2) == loss(pairs.view_1)
    torch.manual_seed(4)
    twice = objective.online.embed_rows(pairs.tokens, pairs.view_1.repeat(2).reshape(-1, 2).T.reshape(-1))
    assert (twice[:4] - twice[4:]).abs().max() > 1e-3
    assert loss(pairs.view_1) == pytest.approx(info_nce(twice[:4], twice[4:], 1.0).item(), abs=1e-6)


def test_regression_loss_is_mean_squared_error_of_cosines():
    h1, h2, scores = torch.tensor([[1.0, 0], [3, 4]]), torch.tensor([[2.0, 0], [4, 3]]), torch.tensor([1.0, 0.5])
    assert squared_error(h1, h2, scores).item() == pytest.approx((0.96 - 0.5) ** 2 / 2, abs=1e-7)


def test_simcse_without_dropout_is_refused(tmp_path):
    encoder, _ = tiny_encoder(tmp_path, dropout=0.0)
    with pytest.raises(TrainingError, match=r"has no dropout.*Set encoder\.dropout"):
        SimCSEConfig().build(encoder)


def test_losses_are_computed_in_full_precision_inside_autocast(encoder):
    h1, h2 = draw(2, 9).float()
    for loss in (nt_xent, info_nce, partial(info_nce, symmetric=True)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            short = loss(h1, h2, 0.05)
        assert short.item() == loss(h1, h2, 0.05).item()


def test_contrastive_objective_trains_only_the_encoder(encoder):
    objective = ContrastiveConfig().build(encoder[0])
    assert len(objective.learning_parameters()) == len(list(encoder[0].parameters()))
    assert objective.online.width == WIDTH
