"""Convolutions over tokens: packed equals unpacked, and unsupported settings of a folder are refused."""

import pytest
import torch
from safetensors.torch import save_file

from bsl.models.encoder import network
from bsl.models.encoder.cnn import CNN, neighbours
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.errors import EncoderError, TrainingError
from tests.fake_processes import as_process
from tests.tiny_heads import ROWS, TEXTS, ours, rewrite


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel_sizes": [2]}, r"CNN: kernels \[2\], expected odd"),
        ({"stride_sizes": [2]}, r"strides \[2\], expected 1"),
    ],
)
def test_even_kernel_or_stride_of_2_is_rejected(tmp_path, change, message):
    ours(tmp_path / "bare", "CNN, Dense, Normalize").save(tmp_path / "made")
    rewrite(tmp_path / "made" / "1_CNN" / "cnn_config.json", lambda settings: settings | change)
    with pytest.raises(EncoderError, match=f"1_CNN: .*{message}"):
        SentenceEncoder.load(tmp_path / "made")


def test_cnn_after_pooling_is_rejected(tmp_path):
    ours(tmp_path / "bare", "CNN").save(tmp_path / "made")
    rewrite(tmp_path / "made" / "modules.json", lambda modules: [modules[0], modules[2], modules[1]])
    with pytest.raises(
        EncoderError,
        match=r"modules Transformer → Pooling → CNN: CNN follows Pooling, expected it after Transformer .*CNN",
    ):
        SentenceEncoder.load(tmp_path / "made")


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


def test_pooled_token_vectors_are_the_sentence_vectors(tmp_path):
    encoder = ours(tmp_path, "CNN")
    tokens = token_ids(encoder.tokenizer, TEXTS, 24)
    with torch.inference_mode():
        x_BTD, mask_BT = encoder.network.token_vectors(tokens, ROWS)
        mean_BD = x_BTD.sum(1) / mask_BT.sum(1, keepdim=True)
        torch.testing.assert_close(mean_BD, encoder.network.embed(tokens, ROWS, 20), rtol=0, atol=1e-6)


def test_batch_not_divisible_among_processes_is_rejected(tmp_path):
    encoder = ours(tmp_path, "CNN")
    tokens = token_ids(encoder.tokenizer, TEXTS, 24)
    with (
        as_process(0, of=4),
        pytest.raises(TrainingError, match="batch of 6 sentences cannot be divided equally among 4"),
    ):
        encoder.network.token_vectors(tokens, ROWS)


@pytest.mark.parametrize("kernels", [(1,), (3, 1), (5, 7)])
def test_packed_convolutions_equal_convolutions_of_single_sentences(kernels):
    torch.manual_seed(3)
    cnn, lengths = CNN(5, 4, kernels).double(), [1, 4, 2, 9, 1]
    x_ND = torch.randn(sum(lengths), 5, dtype=torch.float64, requires_grad=True)
    found = cnn.packed(x_ND, torch.arange(5).repeat_interleave(torch.tensor(lengths)))
    alone = torch.cat([cnn(part[None])[0] for part in x_ND.split(lengths)])
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)
    weights, learning = torch.randn_like(alone), [x_ND, *cnn.parameters()]
    slopes = [torch.autograd.grad((y * weights).sum(), learning) for y in (found, alone)]
    for packed, plain in zip(*slopes, strict=True):
        torch.testing.assert_close(packed, plain, rtol=0, atol=1e-12)


def test_neighbours_do_not_cross_sentence_boundaries():
    found = neighbours(torch.tensor([0, 0, 0, 1]), 1)
    assert found.tolist() == [[4, 0, 1], [0, 1, 2], [1, 2, 4], [4, 3, 4]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"activation_function": "torch.nn.modules.activation.GELU"},
            "dense layer on token vectors with the settings .*GELU",
        ),
        ({"bias": True}, "dense layer on token vectors with the settings .*'bias': True"),
    ],
)
def test_token_dense_layer_other_than_relu_is_rejected(tmp_path, change, message):
    ours(tmp_path / "bare", "CNN, TokenReLU").save(tmp_path / "made")
    rewrite(tmp_path / "made" / "2_Dense" / "config.json", lambda settings: settings | change)
    with pytest.raises(EncoderError, match=f"2_Dense: .*{message}"):
        SentenceEncoder.load(tmp_path / "made")


def test_token_relu_with_trained_weights_is_rejected(tmp_path):
    ours(tmp_path / "bare", "CNN, TokenReLU").save(tmp_path / "made")
    save_file({"linear.weight": 2 * torch.eye(12)}, tmp_path / "made" / "2_Dense" / "model.safetensors")
    with pytest.raises(EncoderError, match=r"2_Dense: .*trained weights, expected the identity"):
        SentenceEncoder.load(tmp_path / "made")
