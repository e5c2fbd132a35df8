"""Matryoshka: the loss summed over prefixes, restated in float64 with truncated vectors and networks."""

import pytest
import torch
from torch.nn.functional import cosine_similarity

from bsl.models.errors import TrainingError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.objectives.info_nce import info_nce, nt_xent
from bsl.models.objectives.supervised_config import RegressionConfig, SCLConfig
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import WIDTH, every_field, pairs_of, tiny_encoder

CUTS, TEMPERATURE = (4, 10), 0.2


@pytest.fixture
def setting(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    return encoder.double(), pairs_of(tokenizer, **every_field())


def vectors(encoder, batch):
    return [encoder.embed(batch.tokens, rows, 512) for rows in (batch.view_1, batch.view_2)]


def contrast(h1, h2, *_):
    return nt_xent(h1, h2, TEMPERATURE)


def bootstrap(h1, h2, objective, batch):
    """Return equation 2 with the predictor reduced to the rows and columns of the first dimensions."""
    kept = h1.shape[1]
    first, second, last = (x for x in objective.predictor.blocks[0] if isinstance(x, torch.nn.Linear))
    targets = [x[:, :kept].detach() for x in vectors(objective.target, batch)]

    def predict(h):
        h = torch.relu(h @ first.weight[:, :kept].T + first.bias)
        h = torch.relu(h @ second.weight.T + second.bias)
        return h @ last.weight[:kept].T + last.bias[:kept]

    cosines = [cosine_similarity(predict(h1), targets[1]), cosine_similarity(predict(h2), targets[0])]
    return -0.5 * sum(cosines).mean()


def dropout_contrast(h1, _, objective, __):
    """Return SimCSE's loss without dropout in the transformer: both views are equal."""
    kept, dense = h1.shape[1], objective.head[0]
    z = torch.tanh(h1 @ dense.weight[:kept, :kept].T + dense.bias[:kept])
    return info_nce(z, z, TEMPERATURE)


CASES = [
    (ContrastiveConfig(temperature=TEMPERATURE, dims=CUTS), contrast),
    (BSLConfig(k=2, norm="none", dims=CUTS), bootstrap),
    (SimCSEConfig(temperature=TEMPERATURE, dims=CUTS), dropout_contrast),
]


@pytest.mark.parametrize(("config", "restated"), CASES, ids=[case[0].name for case in CASES])
def test_loss_and_gradients_equal_the_sum_over_truncated_vectors(setting, config, restated):
    encoder, batch = setting
    if config.name == "simcse":
        encoder.heard = torch.nn.Dropout(0.5)  # SimCSE requires dropout; no vector passes through this module
    torch.manual_seed(2)
    objective = config.build(encoder).double()
    h1, h2 = vectors(objective.online, batch)
    expected = sum(restated(h1[:, :kept], h2[:, :kept], objective, batch) for kept in (WIDTH, *CUTS))
    assert_equal_losses(objective(batch), expected, objective.learning_parameters(), 1e-9, 1e-9)


ADDED = {
    "scl": SCLConfig(),
    "regression": RegressionConfig(),
    "distillation": DistilConfig(),
    "BSL+": BSLConfig(k=2, norm="none", contrastive_weight=0.1),
    "anchored": ContrastiveConfig(anchor_weight=2.0),
}


@pytest.mark.parametrize("config", ADDED.values(), ids=ADDED)
def test_each_prefix_adds_its_own_loss_term(setting, config):
    encoder, batch = setting

    def loss(*dims):
        torch.manual_seed(2)
        return config.model_copy(update={"dims": dims}).build(encoder).double()(batch).item()

    whole, both = loss(), loss(*CUTS)
    assert both - whole == pytest.approx(sum(loss(kept) - whole for kept in CUTS), abs=1e-6)
    assert all(abs(loss(kept) - whole) > 1e-3 for kept in CUTS)


def test_invalid_dims_are_refused(setting):
    with pytest.raises(TrainingError, match=rf"dims contains \[{WIDTH}\], expected numbers below .* width {WIDTH}"):
        ContrastiveConfig(dims=(4, WIDTH)).build(setting[0])
    for fields in ({"queue": 8}, {"loss": "vectors"}):
        with pytest.raises(ValueError, match=r"dims \[8\] cannot be combined with a queue or a teacher's vectors"):
            DistilConfig(dims=(8,), **fields)
    with pytest.raises(ValueError, match="a number occurs twice"):
        ContrastiveConfig(dims=(4, 4))
