"""`encode` and `similarity` as users of sentence-transformers type them."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import bsl
from bsl.storage.assets.embedded import embedded_path

TEXTS = ["A dog runs.", "Prices fell in the second quarter of the year.", "Snow."]


@pytest.fixture(scope="module")
def encoder():
    return bsl.SentenceEncoder.load("embedded:mini-sentence")


@pytest.fixture(scope="module")
def theirs():
    return SentenceTransformer(str(embedded_path("mini-sentence")), device="cpu")


@pytest.mark.parametrize("texts", [TEXTS[0], TEXTS])
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_size": 2}, {"normalize_embeddings": True}, {"convert_to_tensor": True},
     {"convert_to_tensor": True, "normalize_embeddings": True, "batch_size": 1}, {"show_progress_bar": False}],
    ids=str,
)  # fmt: skip
def test_options_give_the_form_and_the_vectors_of_sentence_transformers(encoder, theirs, texts, options):
    ours, expected = encoder.encode(texts, **options), theirs.encode(texts, **options)
    assert type(ours) is type(expected)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), atol=2e-5)


def test_without_numpy_the_vectors_are_a_tensor_and_a_bar_counts_the_texts(encoder, capsys):
    assert isinstance(encoder.encode(TEXTS, convert_to_numpy=False, show_progress_bar=True), torch.Tensor)
    assert "3/3" in capsys.readouterr().out


def test_wrong_batch_size_or_width_is_refused(encoder):
    with pytest.raises(ValueError, match="batch_size is 0, expected a whole number of at least 1"):
        encoder.encode(TEXTS, batch_size=0)
    with pytest.raises(ValueError, match=r"the vectors have shape \(2, 9\), expected \(n, 384\)"):
        encoder.similarity(np.ones((2, 9)), TEXTS)


def test_similarity_takes_texts_and_vectors(encoder):
    expected = encoder.similarity(TEXTS, TEXTS)
    vectors = encoder.encode(TEXTS)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(expected, units @ units.T, atol=1e-6)
    for given in (vectors, torch.from_numpy(vectors).requires_grad_(), vectors.tolist(), [*vectors], 3 * vectors):
        np.testing.assert_allclose(encoder.similarity(given, TEXTS), expected, atol=1e-5)
        np.testing.assert_allclose(encoder.similarity(TEXTS, given), expected, atol=1e-5)
    for one in (TEXTS[0], vectors[0], vectors[0].tolist()):
        np.testing.assert_allclose(encoder.similarity(one, TEXTS), expected[:1], atol=1e-5)
