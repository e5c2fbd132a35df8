"""Each unique sentence is embedded once, and once for all runs of the same encoder in the same precision."""

import numpy as np
import polars as pl
import pytest

from models.encoder.config import EncoderConfig
from models.text.normalize import sentence_ids
from storage.declarations import DATASETS
from storage.declared.dataset import Dataset
from storage.weights import resolve_model
from tasks.embed import embed
from tasks.resolve import resolve_scored_set
from tasks.site import Site
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A mirror with two small sets that share the four originals."""
    for name, others in (("small-de", BACK_DE), ("small-fr", BACK_FR)):
        declared = Dataset(name=name, licence="-", citation="-", splits={"test": "test"}, score_range=(0, 5))
        monkeypatch.setitem(DATASETS, name, declared)
        (tmp_path / name).mkdir()
        table = pl.DataFrame({"sentence1": ORIGINALS, "sentence2": others, "score": [1.0, 2.0, 3.0, 4.0]})
        table.write_parquet(tmp_path / name / "test.parquet")
    return Site(store=str(tmp_path / "store"), mirror=str(tmp_path), device="cpu", threads=1)


def embedded(site, model, names, **fields):
    """Vectors by sentence, and how many sentences had to be embedded."""
    precision = fields.pop("precision", "fp32")
    config = EncoderConfig(model=model.identity, max_length=24, **fields)
    sets = tuple(resolve_scored_set(site, f"{name}/test") for name in names)
    arguments = {"encoder": model, "sets": sets, "config": config, "precision": precision}
    ref = embed.run(site, arguments)
    store = site.open_store()
    table = store.scan(ref).collect()
    vectors = dict(zip(table["sentence_id"], table["embedding"].to_numpy(), strict=True))
    return vectors, store.manifest(ref).figures["embedded"]


def test_a_later_run_embeds_only_what_is_new(site, tmp_path):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    first, made = embedded(site, model, ["small-de"])
    assert made == 8
    both, made = embedded(site, model, ["small-fr", "small-de"])
    assert (made, len(both)) == (4, 12)
    again, made = embedded(site, model, ["small-fr"])
    assert (made, len(again)) == (0, 8)
    assert all(np.array_equal(both[sentence], vector) for sentence, vector in (first | again).items())
    (one,) = pl.DataFrame({"text": ORIGINALS[:1]}).select(sentence_ids(pl.col("text"))).to_series()
    assert one in first


def test_another_encoder_pooling_or_precision_shares_nothing(site, tmp_path):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    other = resolve_model(str(write_tiny(tmp_path / "other", seed=1)))
    assert embedded(site, model, ["small-de"])[1] == 8
    assert embedded(site, model, ["small-fr"], pooling="cls")[1] == 8
    assert embedded(site, model, ["small-fr"], precision="bf16")[1] == 8
    assert embedded(site, other, ["small-fr"])[1] == 8


def test_a_damaged_artifact_is_not_taken_over(site, tmp_path):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    embedded(site, model, ["small-de"])
    (part,) = (tmp_path / "store" / "embeddings").glob("*/*.parquet")
    part.write_bytes(part.read_bytes()[:-8] + b"XXXXXXXX")
    assert embedded(site, model, ["small-fr"])[1] == 8
