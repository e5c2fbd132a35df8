"""Post-hoc transforms: whitening equals its definition, and is fitted on a corpus and applied to other vectors."""

from typing import get_args

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EvaluationError
from bsl.models.transforms.bert_flow import Flow
from bsl.models.transforms.config import AnyTransform, WhiteningConfig
from bsl.models.transforms.whitening import Whitening
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, unique_sentences
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.transforms import TENSORS, fit_on_sets, fit_transform, transform
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

D = 6
NONE = Provenance(stage_version=1, config={})


class Repeating(EvaluationSet):
    """A set that repeats sentences."""

    def read(self):
        return {"test": pl.DataFrame({"text": ORIGINALS + 3 * ORIGINALS[:2]})}


@pytest.fixture
def vectors_ND():
    """Return correlated vectors of very different variances, far from the origin."""
    generator = torch.Generator().manual_seed(0)
    mixture_DD = torch.randn(D, D, generator=generator) * torch.tensor([10.0, 3.0, 1.0, 1.0, 0.3, 0.1])
    return torch.randn(500, D, generator=generator) @ mixture_DD.T + 7.0


def test_whitened_vectors_have_mean_0_and_covariance_1(vectors_ND):
    whitening = WhiteningConfig().fitted(vectors_ND)
    white_ND = whitening.whitened(vectors_ND)
    assert white_ND.mean(dim=0).abs().max() < 1e-9
    np.testing.assert_allclose(np.cov(white_ND.numpy().T), np.eye(D), atol=1e-9)
    scaled_ND = white_ND / white_ND.norm(dim=1, keepdim=True)
    torch.testing.assert_close(whitening.apply(vectors_ND), scaled_ND.float(), atol=1e-7, rtol=0)
    again = type(whitening)(whitening.config, whitening.tensors)
    assert torch.equal(again.apply(vectors_ND[:9]), whitening.apply(vectors_ND[:9]))


def test_whitening_selects_the_dimensions_of_largest_variance(vectors_ND):
    whole = WhiteningConfig().fitted(vectors_ND)
    part = WhiteningConfig(dimensions=2).fitted(vectors_ND)
    torch.testing.assert_close(part.whitened(vectors_ND), whole.whitened(vectors_ND)[:, :2])
    _, _, directions_DD = torch.linalg.svd((vectors_ND - vectors_ND.mean(dim=0)).double(), full_matrices=False)
    kernel_D2 = torch.nn.functional.normalize(part.tensors["kernel"], dim=0)
    aligned_22 = (directions_DD[:2] @ kernel_D2).abs()
    torch.testing.assert_close(aligned_22, torch.eye(2, dtype=torch.float64), atol=1e-6, rtol=0)


def test_each_transform_has_its_own_name_and_class():
    kinds = get_args(AnyTransform)
    assert len({kind.model_fields["name"].default for kind in kinds}) == len(kinds)
    assert {kind.transform_class() for kind in kinds} == {Whitening, Flow}


@pytest.mark.parametrize(
    ("rows", "dimensions", "message"),
    [
        (500, D + 1, "dimensions is 7, expected at most the width of the vectors, 6"),
        (4, None, "cannot whiten to 6 dimensions: 4 vectors of width 6 vary in only 3 directions"),
        (1, 1, "1 vectors of width 6 vary in only 0 directions"),
    ],
)
def test_whitening_refuses_too_many_dimensions(vectors_ND, rows, dimensions, message):
    with pytest.raises(EvaluationError, match=message):
        WhiteningConfig(dimensions=dimensions).fitted(vectors_ND[:rows])
    vectors_ND[2] = torch.nan
    with pytest.raises(EvaluationError, match="vector 2 of the corpus is not"):
        WhiteningConfig().fitted(vectors_ND)


def test_whitening_fitted_on_a_corpus_transforms_other_vectors(site, tmp_path):
    model, store = resolve_model(str(write_tiny(tmp_path / "model"))), site.open_store()
    texts, corpus = pl.DataFrame({"text": ORIGINALS + BACK_DE + BACK_FR}), CorpusRef(key="0" * 64)
    with store.draft(corpus, NONE) as draft:
        id_of = sentence_ids(pl.col("text")).alias("sentence_id")
        draft.write(texts.select(id_of, "text", source=pl.lit("x"), lang=pl.lit("en")).sort("sentence_id"))
    config = EncoderConfig(model=model.identity, max_length=24)
    arguments = {"encoder": model, "texts": corpus, "config": config, "precision": "fp32"}
    embedded = embed(site, **arguments)
    assert store.manifest(embedded).figures["sentences"] == 12
    assert store.manifest(embedded).provenance.inputs["texts"].kind == "corpus"

    fitted = fit_transform(site, embeddings=embedded, config=WhiteningConfig(dimensions=4))
    white = store.scan(transform(site, embeddings=embedded, fitted=fitted)).collect()
    table = store.scan(embedded).collect()
    x_ND = table["embedding"].to_numpy().astype(np.float64)
    values_D, directions_DD = np.linalg.eigh(np.cov(x_ND.T))
    plain_NK = ((x_ND - x_ND.mean(axis=0)) @ directions_DD / np.sqrt(np.abs(values_D)))[:, :-5:-1]
    plain_NK /= np.linalg.norm(plain_NK, axis=1, keepdims=True)
    # The sign of a direction is arbitrary.
    np.testing.assert_allclose(np.abs(white["embedding"].to_numpy()), np.abs(plain_NK), atol=1e-4)

    others = EmbeddingsRef(key="1" * 64)
    with store.draft(others, NONE) as draft:
        draft.write(table.head(3))
    part = store.scan(transform(site, embeddings=others, fitted=fitted)).collect()
    assert part.equals(white.head(3))  # by the statistics of the corpus, not by their own
    # A later run does not reuse transformed vectors, although they have the same texts and encoder.
    for own in (embedded, others):
        store.fs.rm(f"{store.root}/{own.path}", recursive=True)
    again = embed(site, **arguments)
    assert store.manifest(again).figures["embedded"] == 12
    assert store.scan(again).collect().equals(table)


def test_transform_of_a_set_is_fitted_on_a_sentence_as_often_as_the_set_contains_it(site, tmp_path):
    """Regression: each sentence counted once, unlike in the released codes."""
    model, sets = resolve_model(str(write_tiny(tmp_path / "model"))), (Repeating(dataset="repeating"),)
    config = EncoderConfig(model=model.identity, max_length=24)
    vectors = embed(site, encoder=model, texts=sets, config=config, precision="fp32")
    fitted = fit_on_sets(site, embeddings=vectors, sets=sets, config=WhiteningConfig(dimensions=2))

    store = site.open_store()
    table = unique_sentences(sets).join(store.scan(vectors).collect(), on="sentence_id")
    vector_of = dict(zip(table["text"], table["embedding"].to_numpy(), strict=True))
    x_ND = np.array([vector_of[text] for text in sets[0].sentences()], dtype=np.float64)
    tensors = load_file(store.fetch(fitted) / TENSORS)
    np.testing.assert_allclose(tensors["mean"].numpy(), x_ND.mean(axis=0), atol=1e-6)
    white_NK = (x_ND - x_ND.mean(axis=0)) @ tensors["kernel"].numpy()
    np.testing.assert_allclose(np.cov(white_NK.T), np.eye(2), atol=1e-6)
