"""A text's vector does not depend on the other texts of the call, whatever the architecture."""

import numpy as np
import pytest
import torch

from bsl.models.encoder.padding_test import batches_of_equal_length, reads_padding
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.differential.encoder_folders import BASES
from tests.layouts import TEXTS, layout, opened, roberta, write
from tests.tiny_encoder import tiny_encoder


@pytest.mark.parametrize("name", ["squeezebert", "layoutlm", "mobilebert", "convbert", "fnet", "nystromformer"])
@pytest.mark.filterwarnings("ignore")
def test_vectors_equal_those_of_each_text_alone(name, tmp_path):
    folder = write(tmp_path / "model", BASES[name](tmp_path))
    encoder = SentenceEncoder.load(folder)
    with torch.no_grad():
        for weight in encoder.network.parameters():  # a padding token with a vector, as in published models
            weight.add_(0.01)
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.abs(together - alone).max() <= 1e-5
    theirs = opened(folder).encode(TEXTS, batch_size=1, show_progress_bar=False)
    assert np.abs(SentenceEncoder.load(folder).encode(TEXTS) - theirs).max() <= 1e-5


@pytest.mark.filterwarnings("ignore")
def test_text_that_contains_the_padding_token_gets_the_vector_of_the_library(tmp_path):
    """RoBERTa's padding token has no position of its own, wherever it is."""
    folder = write(tmp_path, layout(roberta()))
    texts = ["A man <pad> plays.", *TEXTS]
    theirs = opened(folder).encode(texts, batch_size=1, show_progress_bar=False)
    assert np.abs(SentenceEncoder.load(folder).encode(texts) - theirs).max() <= 1e-5


def test_batches_have_one_length_and_at_most_the_given_tokens():
    lengths = np.array([3, 5, 3, 3, 9, 5])
    batches = [rows.tolist() for rows in batches_of_equal_length(lengths, 7)]
    assert batches == [[0, 2], [3], [1], [5], [4]]


def test_architecture_that_mixes_the_texts_of_a_call_is_refused(tmp_path):
    backbone = tiny_encoder(tmp_path)[0].backbone.eval()
    assert not reads_padding(backbone, 0, 24, left=False)
    backbone.embeddings.register_forward_hook(lambda _, __, found_BTD: found_BTD + found_BTD.sum(dim=0))
    with pytest.raises(EncoderError, match="another vector when other texts"):
        reads_padding(backbone, 0, 24, left=False)
