"""An encoder that has taken a transform in: what sentence-transformers opens gives the transformed vectors."""

import numpy as np
import polars as pl
import pytest
import torch

from models.baselines.config import WhiteningConfig
from models.baselines.posthoc import fitted_transform
from models.encoder.config import EncoderConfig
from models.encoder.encode import encode
from models.encoder.export import export_sentence_transformers
from models.encoder.folding import fold
from models.encoder.loading import load_encoder
from models.encoder.network import Encoder
from models.encoder.saved import saved_config
from models.errors import EncoderError
from storage.embedded import embedded_path
from tests.tiny_encoder import tiny_encoder

KEPT = 128


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    return rows["premise"].unique(maintain_order=True).head(600).to_list()


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", False), ("first-last", False), ("mean", True)])
def test_a_whitened_encoder_opens_in_sentence_transformers_with_covariance_1(tmp_path, texts, pooling, normalize):
    from sentence_transformers import SentenceTransformer

    config = EncoderConfig(model="embedded:bert-mini", pooling=pooling, normalize=normalize)
    encoder, tokenizer = load_encoder(embedded_path("bert-mini"), config)
    own_ND = torch.tensor(encode(encoder, tokenizer, texts))
    whitening = fitted_transform(own_ND, WhiteningConfig(dimensions=KEPT))
    folded = fold(encoder, *whitening.linear())
    export_sentence_transformers(folded, tokenizer, tmp_path / "st")

    described = saved_config(tmp_path / "st", "folded")
    assert (described.pooling, described.normalize) == (pooling, False)
    again, tokens = load_encoder(tmp_path / "st", described)
    ours_NK = encode(again, tokens, texts)
    theirs_NK = SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(texts, batch_size=32)
    assert theirs_NK.shape == (len(texts), KEPT)
    scale = np.abs(ours_NK).max()
    assert np.abs(ours_NK - theirs_NK).max() <= 1e-5 * scale
    assert np.abs(whitening.apply(own_ND).numpy() - theirs_NK).max() <= 1e-5 * scale
    np.testing.assert_allclose(np.cov(theirs_NK.T.astype(np.float64)), np.eye(KEPT), atol=1e-3)


def test_the_encoder_itself_is_left_as_it_was(tmp_path):
    encoder, _ = tiny_encoder(tmp_path)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    state = torch.get_rng_state()
    folded = fold(encoder, torch.eye(32, dtype=torch.float64)[:5], torch.ones(5, dtype=torch.float64))
    assert isinstance(folded, Encoder)
    assert folded.width == 5
    assert torch.equal(torch.get_rng_state(), state)
    assert encoder.state_dict().keys() == before.keys()
    assert len(encoder.sentence_heads) == 0


def test_a_map_of_other_vectors_is_refused(tmp_path):
    encoder, _ = tiny_encoder(tmp_path)
    with pytest.raises(EncoderError, match="Dense takes vectors of width 31, those before it have 32"):
        fold(encoder, torch.zeros(3, 31), torch.zeros(3))
