"""Convolutions that training adds above a transformer: initialised by the seed, kept if the folder has some."""

import pytest
import torch

from bsl.models.encoder.cnn import CNN, TokenReLU, convolutions_of, with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.tiny_encoder import WIDTH, write_tiny

SMALL = CNNConfig(kernels=(1, 3), channels=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("bare"))


def bare(folder, cnn=SMALL):
    return SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, cnn=cnn))


def drawn(folder, seed):
    torch.manual_seed(seed)
    return with_convolutions(bare(folder).network)


def test_convolutions_are_added_for_training_not_on_load(folder):
    state = torch.get_rng_state()
    encoder = bare(folder).network
    assert torch.equal(torch.get_rng_state(), state)
    assert (len(encoder.token_heads), encoder.width) == (0, WIDTH)
    grown = with_convolutions(encoder)
    assert [type(head) for head in grown.token_heads] == [CNN, TokenReLU]
    assert grown.width == 12
    assert convolutions_of(grown.token_heads) == SMALL


def test_seed_initialises_convolutions_like_torch_conv1d(folder):
    torch.manual_seed(5)
    plain = [torch.nn.Conv1d(WIDTH, 6, kernel) for kernel in (1, 3)]
    for conv, found in zip(plain, drawn(folder, 5).token_heads[0].convs, strict=True):
        assert torch.equal(conv.weight, found.weight)
        assert torch.equal(conv.bias, found.bias)
    assert not torch.equal(plain[0].weight, drawn(folder, 6).token_heads[0].convs[0].weight)


def test_missing_cnn_config_leaves_encoder_and_random_state_unchanged(folder):
    encoder = bare(folder, cnn=None).network
    state = torch.get_rng_state()
    assert with_convolutions(encoder) is encoder
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("relu", [True, False])
def test_saved_convolutions_are_reused_and_a_mismatch_is_rejected(folder, tmp_path, relu):
    asked = SMALL.model_copy(update={"relu": relu})
    encoder = bare(folder, asked)
    grown = with_convolutions(encoder.network)
    encoder.with_network(grown).save(tmp_path)
    for config in (asked, None):
        again = bare(tmp_path, config).network
        assert with_convolutions(again) is again
        assert torch.equal(again.token_heads[0].convs[1].weight, grown.token_heads[0].convs[1].weight)
    with pytest.raises(EncoderError, match=r"encoder.cnn is .*kernels=\(5,\).* saved with .*kernels=\(1, 3\)"):
        bare(tmp_path, CNNConfig(kernels=(5,)))


def test_even_kernels_are_refused():
    with pytest.raises(ValueError, match=r"kernels \[2, 3\], expected odd sizes"):
        CNNConfig(kernels=(2, 3))
