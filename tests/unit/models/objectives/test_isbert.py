"""IS-BERT's loss equals hand computation and the released formula in float64."""

import math

import pytest
import torch

from bsl.models.encoder.cnn import with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.contrastive_config import ISBERTConfig
from bsl.models.objectives.isbert import jensen_shannon
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import ORIGINALS, pairs_of, write_tiny

CNN = CNNConfig(kernels=(1, 3, 5), channels=8)
TEXTS = [*ORIGINALS, "dogs", "A man."]


def restated(x_ND, h_BD, lengths):
    """Restate MutualInformationLoss.py by masks: a masked product adds log 2 − softplus(0) = 0."""
    res, log_2 = x_ND @ h_BD.T, math.log(2.0)
    pos = torch.block_diag(*(torch.ones(length, 1, dtype=res.dtype) for length in lengths))
    neg = 1 - pos

    def softplus(x):
        return torch.log(1 + torch.exp(x))

    e_pos = (log_2 - softplus(-(res * pos))).sum() / len(res)
    e_neg = (softplus(-(res * neg)) + res * neg - log_2).sum() / (len(res) * (res.shape[1] - 1))
    return e_neg - e_pos


@pytest.mark.parametrize(
    ("x", "h", "sentence", "expected"),
    [
        # One sentence: no negative term; log(1 + e⁻¹) and log(1 + e⁻³).
        ([[1.0], [3.0]], [[1.0]], [0, 0], (0.313261687518 + 0.048587351574) / 2 - math.log(2)),
        ([[400.0], [-300.0]], [[-1.0], [2.0]], [0, 1], (400 + 600 + 800 + 300) / 2 - 2 * math.log(2)),
    ],
    ids=["one sentence", "large"],
)
def test_jensen_shannon_loss_equals_a_hand_computed_value(x, h, sentence, expected):
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    loss = jensen_shannon(x, torch.tensor(h, dtype=torch.float64), sentence_N=torch.tensor(sentence))
    assert loss.item() == pytest.approx(expected, abs=1e-11)
    assert torch.isfinite(torch.autograd.grad(loss, x)[0]).all()


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_batch_loss_equals_the_released_formula_on_sentences_embedded_separately(tmp_path, architecture, relu):
    """Special tokens count and padding does not: checked in float64, with the gradients of all weights."""
    config = EncoderConfig(model="tiny", max_length=24, cnn=CNN.model_copy(update={"relu": relu}))
    encoder = SentenceEncoder.load(write_tiny(tmp_path, architecture, dropout=0.0), config)
    objective = ISBERTConfig().build(with_convolutions(encoder.network)).double()
    pairs = pairs_of(encoder.tokenizer, TEXTS, TEXTS[::-1])  # second views are not read
    grown, states = objective.online, []
    for number in range(len(TEXTS)):
        ids, mask = pairs.tokens.padded(pairs.view_1[number : number + 1])
        x = grown.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        x = torch.cat([conv(x.mT).mT for conv in grown.token_heads[0].convs], dim=-1)[0]
        states.append(x.clamp(min=0) if relu else x)
    vectors = torch.stack([x.mean(dim=0) for x in states])
    plain = restated(torch.cat(states), vectors, [len(x) for x in states])
    assert_equal_losses(objective(pairs), plain, objective.learning_parameters(), 1e-10, 1e-10)


def test_an_encoder_with_modules_after_pooling_is_refused(tmp_path):
    config = EncoderConfig(model="tiny", max_length=24, normalize=True)
    encoder = SentenceEncoder.load(write_tiny(tmp_path), config).network
    with pytest.raises(TrainingError, match=r"tiny has 1 modules after pooling, expected none.*normalize=false"):
        ISBERTConfig().build(encoder)
