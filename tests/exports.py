"""What every export owes: it is read again exactly, and gives sentence-transformers the same vectors."""

import warnings

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from bsl.models.encoder.sentence_encoder import SentenceEncoder


def library_vectors(folder, texts, batch_size=32):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from the library's own imports
        peer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        return peer.encode(texts, batch_size=batch_size)


def exported(encoder, folder, texts, batch_size=32):
    """Save an encoder and return what is read from the folder, after comparing weights and vectors."""
    vectors = encoder.encode(texts)
    encoder.save(folder)
    assert np.abs(library_vectors(folder, texts, batch_size) - vectors).max() <= 1e-5
    again = SentenceEncoder.load(folder)
    expected, found = encoder.network.state_dict(), again.network.state_dict()
    assert list(expected) == list(found)
    assert all(torch.equal(tensor, found[name]) for name, tensor in expected.items())
    np.testing.assert_array_equal(again.encode(texts), vectors)
    return again
