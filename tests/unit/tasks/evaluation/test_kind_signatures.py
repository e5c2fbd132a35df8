"""Signatures of scores describe data and vectors alike for every source of vectors."""

import polars as pl
import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.signature import parse_signature
from bsl.models.transforms.config import WhiteningConfig
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.embedding.embed import embed, embed_tfidf
from bsl.tasks.embedding.transforms import fit_transform, transform
from bsl.tasks.evaluation.kind import digest_of, digests
from bsl.tasks.evaluation.kinds import score
from bsl.tasks.evaluation.sts import StsKind
from tests.corpora import publish_corpus
from tests.tiny_encoder import BACK_DE, ORIGINALS, write_tiny

ROWS = pl.DataFrame({"sentence1": ORIGINALS, "sentence2": BACK_DE, "score": [1.0, 2.0, 3.0, 4.0]})


@pytest.fixture
def small(declare):
    """Return a run context, and a set of four pairs in two splits."""
    site = declare("small", dev=ROWS.reverse(), test=ROWS)
    return site, tuple(resolve_scored_set(site, f"small/{split}") for split in ("dev", "test"))


def signatures(site, embeddings, sets):
    ref = score(site, embeddings, "m", "", StsKind.title, sets, BootstrapConfig(resamples=100), None)
    rows = site.open_store().scan(ref).collect().iter_rows(named=True)
    return {(row["metric"], row["split"]): parse_signature(row["signature"]) for row in rows}


def vectors(site, tmp_path, texts, **config):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    return embed(site, model, texts, EncoderConfig(model=model.identity, max_length=24, **config), "bf16")


def test_encoder_signature_lists_encoder_settings_and_data_digest(small, tmp_path):
    site, sets = small
    lines = signatures(site, vectors(site, tmp_path, sets, pooling="cls", normalize=True), sets)
    fields = lines["spearman", "test"]
    said = {"set": "small/test", "by": "cosine", "vectors": "encoder", "pool": "cls", "len": "24", "special": "yes"}
    assert (said | {"norm": "yes", "case": "kept", "dtype": "bf16", "prompt": "none"}).items() <= fields.items()
    assert fields["data"] == digest_of(sets[1])
    assert lines["pearson", "dev"]["data"] == digest_of(sets[0]) != fields["data"]


def test_tfidf_and_transform_signatures_name_their_fitted_artifact(small, tmp_path):
    site, (_, *sets) = small
    texts, sets = publish_corpus(site, ORIGINALS), tuple(sets)
    words = signatures(site, embed_tfidf(site, texts, sets), sets)["spearman", "test"]
    assert (words["vectors"], words["fitted"], "pool" in words) == ("tfidf", str(texts), False)
    settings = WhiteningConfig(dimensions=2)
    fitted = fit_transform(site, embeddings=vectors(site, tmp_path, texts), config=settings)
    whitened = transform(site, embeddings=vectors(site, tmp_path, sets), fitted=fitted)
    fields = signatures(site, whitened, sets)["spearman", "test"]
    assert (fields["vectors"], fields["fitted"]) == (f"encoder+{settings.name}", str(fitted))
    assert (fields["pool"], fields["dtype"]) == ("mean", "bf16")


def test_set_digest_depends_on_pairs_not_on_file_layout_or_the_name_of_the_split(small, tmp_path):
    site, (_, test) = small
    path = tmp_path / "mirror" / "small" / "test.parquet"
    figures = pl.DataFrame({"dataset": ["small"], "split": ["all"]})
    assert digests(figures, (test,)) == {("small", "all"): digest_of(test)}
    ROWS.write_parquet(path, compression="uncompressed", row_group_size=2)
    assert digest_of(resolve_scored_set(site, "small/test")) == digest_of(test)
    ROWS.with_columns(score=pl.Series([1.0, 2.0, 3.0, 4.5])).write_parquet(path)
    assert digest_of(resolve_scored_set(site, "small/test")) != digest_of(test)
