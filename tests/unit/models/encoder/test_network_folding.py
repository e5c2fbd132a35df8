"""An encoder with a folded-in transform gives the transformed vectors in sentence-transformers."""

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.models.serving.reduction import fold
from bsl.models.transforms.config import WhiteningConfig
from bsl.storage.assets.embedded import embedded_path
from tests.exports import exported
from tests.tiny_encoder import tiny_encoder

WIDTH = 256


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    return rows["premise"].unique(maintain_order=True).head(400).to_list()


@pytest.mark.parametrize(
    ("pooling", "normalize", "kept"),
    # The last layer is normalised, so the vectors vary in WIDTH - 1 directions; at length 1, in WIDTH - 2.
    [("mean", False, WIDTH - 1), ("mean", True, WIDTH - 2), ("first-last", False, 128)],
)
def test_folded_whitening_round_trips_in_sentence_transformers(tmp_path, texts, pooling, normalize, kept):
    config = EncoderConfig(model="embedded:bert-mini", pooling=pooling, normalize=normalize)
    encoder = SentenceEncoder.load(embedded_path("bert-mini"), config)
    own_ND = torch.tensor(encoder.encode(texts))
    whitening = WhiteningConfig(dimensions=kept).fitted(own_ND)
    np.testing.assert_allclose(np.cov(whitening.whitened(own_ND).numpy().T), np.eye(kept), atol=1e-6)
    folded = encoder.with_network(fold(encoder.network, *whitening.linear()))
    few = texts[:40]
    again = exported(folded, tmp_path / "st", few)
    assert (again.config.pooling, again.config.normalize, again.width) == (pooling, True, kept)
    assert np.abs(whitening.apply(own_ND[:40]).numpy() - again.encode(few)).max() <= 1e-5


def test_fold_leaves_the_encoder_and_random_state_unchanged(tmp_path):
    encoder, _ = tiny_encoder(tmp_path)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    state = torch.get_rng_state()
    folded = fold(encoder, torch.eye(32, dtype=torch.float64)[:5], torch.ones(32, dtype=torch.float64))
    assert isinstance(folded, Encoder)
    assert folded.width == 5
    assert torch.equal(torch.get_rng_state(), state)
    assert encoder.state_dict().keys() == before.keys()
    assert len(encoder.sentence_heads) == 0


def test_fold_rejects_a_transform_of_another_width(tmp_path):
    encoder, _ = tiny_encoder(tmp_path)
    with pytest.raises(EncoderError, match="Dense: input vectors of width 32, expected 31"):
        fold(encoder, torch.zeros(3, 31).double(), torch.zeros(31).double())
