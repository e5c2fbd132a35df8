"""Convolutions over tokens: packed equals unpacked, and unsupported settings of a folder are refused."""

import pytest
import torch

from bsl.models.encoder import network
from bsl.models.encoder.cnn import CNN, TokenReLU, convolutions_of, with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from tests.tiny_encoder import WIDTH, write_tiny
from tests.tiny_heads import ROWS, TEXTS, ours


@pytest.mark.parametrize("pooling", ["mean", "first-last"])
@pytest.mark.parametrize("kind", [None, "CNN"])
@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_token_vectors_match_a_padded_pass_in_row_order(tmp_path, monkeypatch, architecture, kind, pooling):
    monkeypatch.setattr(network, "CPU_STEP_TOKENS", 20)  # several batches, where sentences are padded
    encoder = ours(tmp_path, kind or "Dense", architecture, pooling=pooling)
    tokens = token_ids(encoder.tokenizer, TEXTS, 24)
    found_BTD, mask_BT = encoder.network.token_vectors(tokens, ROWS)
    ids_BT, expected_BT = tokens.padded(ROWS)
    assert torch.equal(mask_BT, expected_BT)
    states = encoder.network.backbone(input_ids=ids_BT, attention_mask=mask_BT, output_hidden_states=True)
    last = states.last_hidden_state
    expected_BTD = last if pooling == "mean" else (states.hidden_states[1] + last) / 2
    real = mask_BT[..., None]
    if kind:
        parts = [conv((expected_BTD * real).mT).mT for conv in encoder.network.token_heads[0].convs]
        expected_BTD = torch.cat(parts, dim=-1)
    torch.testing.assert_close(found_BTD, expected_BTD * real, rtol=0, atol=2e-6)
    weights = torch.randn(found_BTD.shape)
    learning = [p for name, p in encoder.network.named_parameters() if "sentence_heads" not in name]
    one, other = (torch.autograd.grad((x * weights).sum(), learning) for x in (found_BTD, expected_BTD * real))
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


SMALL = CNNConfig(kernels=(1, 3), channels=6)


@pytest.mark.parametrize("relu", [True, False])
def test_convolutions_are_added_for_training_and_reused_when_saved(tmp_path, relu):
    def loaded(folder, cnn):
        return SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, cnn=cnn))

    asked = SMALL.model_copy(update={"relu": relu})
    encoder = loaded(write_tiny(tmp_path / "bare"), asked)
    assert (len(encoder.network.token_heads), encoder.width) == (0, WIDTH)
    grown = with_convolutions(encoder.network)
    assert [type(head) for head in grown.token_heads] == [CNN, TokenReLU][: 1 + relu]
    assert (grown.width, convolutions_of(grown.token_heads)) == (12, asked)
    encoder.with_network(grown).save(tmp_path / "made")
    for config in (asked, None):
        again = loaded(tmp_path / "made", config).network
        assert with_convolutions(again) is again
        assert torch.equal(again.token_heads[0].convs[1].weight, grown.token_heads[0].convs[1].weight)


@pytest.mark.parametrize("kernels", [(2, 3), (1, 0), (-1,)])
def test_kernels_that_give_no_vector_per_token_are_refused(kernels):
    with pytest.raises(ValueError, match="kernels"):
        CNNConfig(kernels=kernels)
