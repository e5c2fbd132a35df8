"""The exported folder is a sentence-transformers model with the same embeddings."""

import warnings

import numpy as np
import pytest
import torch

from models.encoder.encode import encode
from models.encoder.export import export_sentence_transformers
from models.encoder.loading import load_encoder
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder

TEXTS = [*ORIGINALS, *BACK_DE, "a man is playing " * 20, "x"]


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls", "first-last"])
def test_sentence_transformers_gives_the_same_embeddings(tmp_path, architecture, pooling, normalize):
    encoder, tokenizer = tiny_encoder(tmp_path / "in", architecture, pooling=pooling)
    encoder.config = encoder.config.model_copy(update={"normalize": normalize})
    export_sentence_transformers(encoder, tokenizer, tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the library's own imports
        from sentence_transformers import SentenceTransformer

        theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS)
    assert np.abs(theirs - encode(encoder, tokenizer, TEXTS)).max() <= 1e-5


def test_an_export_loads_again_to_the_same_weights(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path / "in")
    export_sentence_transformers(encoder, tokenizer, tmp_path / "out")
    again, _ = load_encoder(tmp_path / "out", encoder.config)
    assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), again.parameters(), strict=True))


def test_the_same_encoder_exports_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        encoder, tokenizer = tiny_encoder(tmp_path / "in")
        export_sentence_transformers(encoder, tokenizer, tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file())
    assert len(files) >= 7
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
