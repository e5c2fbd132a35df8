"""Signatures of scores describe data and vectors alike for every source of vectors."""

import polars as pl
import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.signature import parse_signature
from bsl.models.transforms.config import WhiteningConfig
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.artifacts.schemas import CORPUS
from bsl.storage.datasets.declaration import Dataset
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.embedding.embed import embed, embed_tfidf
from bsl.tasks.embedding.transforms import fit_transform, transform
from bsl.tasks.evaluation.kind import digest_of, digests
from bsl.tasks.evaluation.kinds import score
from bsl.tasks.evaluation.sts import StsKind
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import BACK_DE, ORIGINALS, write_tiny

ROWS = pl.DataFrame({"sentence1": ORIGINALS, "sentence2": BACK_DE, "score": [1.0, 2.0, 3.0, 4.0]})


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A mirror with one set of four pairs in two splits."""
    splits = {"dev": "dev", "test": "test"}
    declared = Dataset(name="small", licence="-", citation="-", splits=splits, score_range=(0, 5))
    monkeypatch.setitem(DATASETS, "small", declared)
    (tmp_path / "small").mkdir()
    ROWS.write_parquet(tmp_path / "small" / "test.parquet")
    ROWS.reverse().write_parquet(tmp_path / "small" / "dev.parquet")
    return RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path), device="cpu", threads=1)


def signatures(site, embeddings, names=("small/test",)):
    sets = tuple(resolve_scored_set(site, name) for name in names)
    settings = {"model": "m", "checkpoint": "", "sets": sets, "bootstrap": BootstrapConfig(resamples=100)}
    scores = site.open_store().scan(score(site, embeddings, kind=StsKind.title, probe=None, **settings)).collect()
    return {(row["metric"], row["split"]): parse_signature(row["signature"]) for row in scores.to_dicts()}


def vectors(site, tmp_path, texts, **config):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    settings = EncoderConfig(model=model.identity, max_length=24, **config)
    return embed(site, encoder=model, texts=texts, config=settings, precision="bf16")


def corpus(site):
    ref = CorpusRef(key="c" * 64)
    texts = pl.DataFrame({"sentence_id": range(4), "text": ORIGINALS, "source": "s", "lang": "en"}).cast(CORPUS)
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(texts)
    return ref


def test_encoder_signature_lists_encoder_settings_and_data_digest(site, tmp_path):
    sets = tuple(resolve_scored_set(site, f"small/{split}") for split in ("dev", "test"))
    lines = signatures(site, vectors(site, tmp_path, sets, pooling="cls", normalize=True), ("small/dev", "small/test"))
    fields = lines["spearman", "test"]
    said = {"set": "small/test", "by": "cosine", "vectors": "encoder", "pool": "cls", "len": "24", "special": "yes"}
    assert (said | {"norm": "yes", "case": "kept", "dtype": "bf16", "prompt": "none"}).items() <= fields.items()
    assert fields["data"] == digest_of(sets[1])
    assert lines["pearson", "dev"]["data"] == digest_of(sets[0]) != fields["data"]


def test_tfidf_and_transform_signatures_name_their_fitted_artifact(site, tmp_path):
    sets, texts = (resolve_scored_set(site, "small/test"),), corpus(site)
    words = signatures(site, embed_tfidf(site, corpus=texts, sets=sets))["spearman", "test"]
    assert (words["vectors"], words["fitted"]) == ("tfidf", str(texts))
    assert "pool" not in words
    settings = WhiteningConfig(dimensions=2)
    fitted = fit_transform(site, embeddings=vectors(site, tmp_path, texts), config=settings)
    whitened = transform(site, embeddings=vectors(site, tmp_path, sets), fitted=fitted)
    fields = signatures(site, whitened)["spearman", "test"]
    assert (fields["vectors"], fields["fitted"]) == (f"encoder+{settings.name}", str(fitted))
    assert (fields["pool"], fields["dtype"]) == ("mean", "bf16")


def test_set_digest_depends_on_pairs_not_on_file_layout(site, tmp_path):
    before = digest_of(resolve_scored_set(site, "small/test"))
    ROWS.write_parquet(tmp_path / "small" / "test.parquet", compression="uncompressed", row_group_size=2)
    assert digest_of(resolve_scored_set(site, "small/test")) == before
    ROWS.with_columns(score=pl.Series([1.0, 2.0, 3.0, 4.5])).write_parquet(tmp_path / "small" / "test.parquet")
    assert digest_of(resolve_scored_set(site, "small/test")) != before


def test_split_all_has_the_digest_of_the_whole_set(site):
    sets = (resolve_scored_set(site, "small/test"),)
    figures = pl.DataFrame({"dataset": ["small"], "split": ["all"]})
    assert digests(figures, sets) == {("small", "all"): digest_of(sets[0])}
