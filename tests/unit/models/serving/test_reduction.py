"""A static table distilled from an encoder: restated ridge solution, quality, export."""

import numpy as np
import polars as pl
import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.models.serving.reduction import RARE, RIDGE, principal_axes, shortened, tabulate
from bsl.storage.assets.embedded import embedded_path
from tests.exports import exported
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, WIDTH, tiny_encoder

TEXTS = [*ORIGINALS, *BACK_DE, *BACK_FR]


@pytest.fixture
def tiny(tmp_path):
    encoder = SentenceEncoder(*tiny_encoder(tmp_path / "in", pooling="cls"))
    return encoder, encoder.encode(TEXTS)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_table_rows_match_the_ridge_regression_solution(tiny):
    encoder, vectors = tiny
    tokenizer = encoder.tokenizer
    table = tabulate(encoder, TEXTS, vectors, 6)
    np.testing.assert_array_equal(encoder.encode(TEXTS), vectors)  # the encoder is unchanged
    assert encoder.config == EncoderConfig(model=encoder.config.model, pooling="cls", max_length=24, prompt="")
    wanted = unit(vectors.astype(np.float64))
    axes = np.linalg.svd(wanted)[2].T[:, :6]
    words = [table.tokenizer(text)["input_ids"] for text in TEXTS]
    counts = np.array([[row.count(token) / len(row) for token in range(len(tokenizer))] for row in words])
    # [CLS] token [SEP]: each token embedded as a text.
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    alone = unit(encoder.encode(names).astype(np.float64)) @ axes
    share = counts.mean(0)
    start = (RARE / (RARE + share))[:, None] * (alone - share @ alone)
    y, mean = wanted @ axes, (wanted @ axes).mean(0)
    made = counts @ start
    start = max(0.0, (made * (y - mean)).sum() / (made**2).sum()) * start + mean
    solved = np.linalg.solve(counts.T @ counts + RIDGE * np.eye(len(start)), counts.T @ y + RIDGE * start)
    found = table.network.backbone.embedding.weight.detach().numpy()
    inner = unit(counts @ solved) @ unit(counts @ solved).T  # signs of axes are arbitrary
    np.testing.assert_allclose(unit(counts @ found) @ unit(counts @ found).T, inner, atol=1e-4)


def test_distilled_table_preserves_similarities_and_round_trips(tmp_path):
    folder = embedded_path("mini-sentence")
    encoder = SentenceEncoder.load(folder)
    rows = pl.read_parquet(embedded_path("stsb") / "train.parquet").head(300)
    texts = pl.concat([rows["sentence1"], rows["sentence2"]]).unique(maintain_order=True).to_list()
    vectors = encoder.encode(texts)
    table = tabulate(encoder, texts, vectors, 64)
    made = table.encode(texts)
    assert made.shape[1] == 64
    pairs = np.triu_indices(len(made), 1)
    assert np.corrcoef((made @ made.T)[pairs], (unit(vectors) @ unit(vectors).T)[pairs])[0, 1] > 0.8
    exported(table, tmp_path / "static", TEXTS)
    with pytest.raises(EncoderError, match="expected a transformer with a fast tokenizer"):
        tabulate(table, texts, made, 8)


def test_principal_axes_are_orthonormal_and_maximise_retained_energy(tiny, tmp_path):
    encoder, vectors = tiny
    axes = principal_axes(vectors)
    np.testing.assert_allclose(axes.T @ axes, np.eye(WIDTH), atol=1e-10)
    energy = (vectors.astype(np.float64) @ axes) ** 2
    np.testing.assert_allclose(np.sort(energy.sum(0))[::-1], energy.sum(0), rtol=1e-9, atol=1e-9)
    assert energy[:, :8].sum() > (vectors[:, :8].astype(np.float64) ** 2).sum()
    short = encoder.with_network(shortened(encoder.network, axes, 8))
    again = exported(short, tmp_path / "out", TEXTS)
    np.testing.assert_allclose(again.encode(TEXTS), unit(vectors @ axes[:, :8]), atol=1e-5)
    with pytest.raises(EncoderError, match=rf"--dims is {WIDTH}, expected less than the encoder.s width {WIDTH}"):
        shortened(encoder.network, axes, WIDTH)
