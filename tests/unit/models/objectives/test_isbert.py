"""IS-BERT's loss equals hand computation and the released formula in float64; training, resume and export."""

import math
from dataclasses import replace

import pytest
import torch

from bsl.models.encoder.cnn import with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.contrastive_config import ISBERTConfig
from bsl.models.objectives.isbert import jensen_shannon
from tests.tiny_encoder import ORIGINALS, pairs_of, write_tiny

CNN = CNNConfig(kernels=(1, 3, 5), channels=8)
TEXTS = [*ORIGINALS, "dogs", "A man."]


def restated(x_ND, h_BD, lengths):
    """Restate MutualInformationLoss.py by masks: a masked product adds log 2 − softplus(0) = 0."""
    res, log_2 = x_ND @ h_BD.T, math.log(2.0)
    pos, neg = torch.zeros_like(res), torch.ones_like(res)
    row = 0
    for sentence, length in enumerate(lengths):
        for _ in range(length):
            pos[row, sentence], neg[row, sentence] = 1, 0
            row += 1

    def softplus(x):
        return torch.log(1 + torch.exp(x))

    e_pos = (log_2 - softplus(-(res * pos))).sum() / len(res)
    e_neg = (softplus(-(res * neg)) + res * neg - log_2).sum() / (len(res) * (res.shape[1] - 1))
    return e_neg - e_pos


def test_jensen_shannon_loss_equals_a_hand_computed_value():
    # Two tokens and one; their means are (1, 1) and (0, 1). Own products 1, 3, 1; with the other sentence 0, 2, 1.
    x = torch.tensor([[1.0, 0], [1, 2], [0, 1]], dtype=torch.float64)
    h = torch.tensor([[1.0, 1], [0, 1]], dtype=torch.float64)
    loss = jensen_shannon(x, h, sentence_N=torch.tensor([0, 0, 1]))
    own = (0.313261687518 + 0.048587351574 + 0.313261687518) / 3  # log(1 + e⁻¹), log(1 + e⁻³), log(1 + e⁻¹)
    others = (0.693147180560 + 2.126928011043 + 1.313261687518) / 3  # log(1 + e⁰), log(1 + e²), log(1 + e¹)
    assert loss.item() == pytest.approx(own + others - 2 * 0.693147180560, abs=1e-11)
    assert loss.item() == pytest.approx(0.216521507457, abs=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradients_equal_the_released_formula(seed):
    generator, lengths = torch.Generator().manual_seed(seed), [3, 1, 5, 2]
    x = torch.randn(sum(lengths), 6, generator=generator, dtype=torch.float64, requires_grad=True)
    h = torch.randn(len(lengths), 6, generator=generator, dtype=torch.float64, requires_grad=True)
    sentence = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    ours, plain = jensen_shannon(x, h, sentence_N=sentence), restated(x, h, lengths)
    assert ours.item() == pytest.approx(plain.item(), abs=1e-12)
    for found, expected in zip(*(torch.autograd.grad(loss, [x, h]) for loss in (ours, plain)), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_large_products_give_finite_loss_and_gradients():
    x = torch.tensor([[400.0], [-300.0]], requires_grad=True)
    loss = jensen_shannon(x, torch.tensor([[-1.0], [2.0]]), sentence_N=torch.tensor([0, 1]))
    assert loss.item() == pytest.approx((400 + 600) / 2 + (800 + 300) / 2 - 2 * math.log(2), rel=1e-6)
    assert torch.isfinite(torch.autograd.grad(loss, x)[0]).all()


def test_loss_of_a_single_sentence_has_no_negative_term():
    x = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    loss = jensen_shannon(x, torch.tensor([[1.0]], dtype=torch.float64), sentence_N=torch.tensor([0, 0]))
    assert loss.item() == pytest.approx((0.313261687518 + 0.048587351574) / 2 - math.log(2), abs=1e-11)


@pytest.fixture(params=["bert", "modernbert"])
def encoder(request, tmp_path):
    folder = write_tiny(tmp_path, request.param, dropout=0.0)
    return SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, cnn=CNN))


@pytest.mark.parametrize("relu", [True, False])
def test_batch_loss_equals_the_loss_of_sentences_embedded_separately(encoder, relu):
    """Special tokens count and padding does not: checked in float64, with the gradients of all weights."""
    encoder.network.config = encoder.config.model_copy(update={"cnn": CNN.model_copy(update={"relu": relu})})
    objective = ISBERTConfig().build(with_convolutions(encoder.network)).double()
    pairs = pairs_of(encoder.tokenizer, TEXTS, TEXTS)
    grown, states = objective.online, []
    for number in range(len(TEXTS)):
        ids, mask = pairs.tokens.padded(pairs.view_1[number : number + 1])
        x = grown.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        x = torch.cat([conv(x.mT).mT for conv in grown.token_heads[0].convs], dim=-1)[0]
        states.append(x.clamp(min=0) if relu else x)
    vectors = torch.stack([x.mean(dim=0) for x in states])
    plain, ours = restated(torch.cat(states), vectors, [len(x) for x in states]), objective(pairs)
    assert ours.item() == pytest.approx(plain.item(), abs=1e-10)
    learning = objective.learning_parameters()
    for found, expected in zip(*(torch.autograd.grad(loss, learning) for loss in (ours, plain)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


def test_loss_ignores_second_views(encoder):
    objective = ISBERTConfig().build(encoder.network)
    pairs = pairs_of(encoder.tokenizer)
    swapped = replace(pairs, view_2=pairs.view_2[::-1])
    assert objective(pairs).item() == objective(swapped).item()


def test_an_encoder_with_modules_after_pooling_is_refused(tmp_path):
    encoder = SentenceEncoder.load(
        write_tiny(tmp_path), EncoderConfig(model="tiny", max_length=24, normalize=True)
    ).network
    with pytest.raises(TrainingError, match=r"tiny has 1 modules after pooling, expected none.*normalize=false"):
        ISBERTConfig().build(encoder)
