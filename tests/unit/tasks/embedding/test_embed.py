"""Each unique sentence is embedded once, and once for all runs of the same encoder in the same precision."""

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError, EvaluationError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import EmbeddingsRef
from bsl.storage.datasets.declaration import Dataset
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set, unique_sentences
from bsl.tasks.embedding.embed import embed
from bsl.tasks.evaluation.comparison import compare
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A mirror with two small sets that share four sentences."""
    for name, others in (("small-de", BACK_DE), ("small-fr", BACK_FR)):
        declared = Dataset(name=name, licence="-", citation="-", splits={"test": "test"}, score_range=(0, 5))
        monkeypatch.setitem(DATASETS, name, declared)
        (tmp_path / name).mkdir()
        table = pl.DataFrame({"sentence1": ORIGINALS, "sentence2": others, "score": [1.0, 2.0, 3.0, 4.0]})
        table.write_parquet(tmp_path / name / "test.parquet")
    return RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path), device="cpu", threads=1)


def embedded(site, model, names, **fields):
    """Return vectors by sentence, and how many sentences had to be embedded."""
    precision = fields.pop("precision", "fp32")
    config = EncoderConfig(model=model.identity, max_length=24, **fields)
    sets = tuple(resolve_scored_set(site, f"{name}/test") for name in names)
    arguments = {"encoder": model, "texts": sets, "config": config, "precision": precision}
    ref = embed(site, **arguments)
    store = site.open_store()
    table = store.scan(ref).collect()
    vectors = dict(zip(table["sentence_id"], table["embedding"].to_numpy(), strict=True))
    return vectors, store.manifest(ref).figures["embedded"]


def test_later_run_embeds_only_new_sentences(site, tmp_path):
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


def test_other_encoder_pooling_or_precision_reuses_no_embeddings(site, tmp_path):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    other = resolve_model(str(write_tiny(tmp_path / "other", seed=1)))
    assert embedded(site, model, ["small-de"])[1] == 8
    assert embedded(site, model, ["small-fr"], pooling="cls")[1] == 8
    assert embedded(site, model, ["small-fr"], precision="bf16")[1] == 8
    assert embedded(site, other, ["small-fr"])[1] == 8


def test_embeddings_of_a_damaged_artifact_are_not_reused(site, tmp_path):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    embedded(site, model, ["small-de"])
    (part,) = (tmp_path / "store" / "embeddings").glob("*/*.parquet")
    part.write_bytes(part.read_bytes()[:-8] + bytes(8))
    assert embedded(site, model, ["small-fr"])[1] == 8


def test_non_finite_embedding_error_names_set_row_and_sentence(site, tmp_path):
    folder = write_tiny(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    snow = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("snow")
    weights["embeddings.word_embeddings.weight"][snow] = 3e38  # finite, but its square is not
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    message = r"^small-de test, row 2, sentence1: 'Two dogs run across the snow\.' has an embedding that is not finite"
    with pytest.raises(EncoderError, match=message):
        embedded(site, resolve_model(str(folder)), ["small-de"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, r"^small-de test, embeddings/1+ \(first scores = gold, second = cosine\): all 4 values of the second"),
        (np.nan, r"^small-de test, embeddings/.*: the first vector of the pair in row 0 is not finite"),
    ],
)
def test_compare_error_names_constant_or_non_finite_embeddings(site, value, message):
    sets, refs = (resolve_scored_set(site, "small-de/test"),), []
    ids = unique_sentences(sets)["sentence_id"]
    for number, table in enumerate([np.random.default_rng(0).normal(size=(8, 4)), np.full((8, 4), value)]):
        refs.append(EmbeddingsRef(key=64 * str(number)))
        with site.open_store().draft(refs[-1], Provenance(stage_version=1, config={})) as draft:
            draft.write(pl.DataFrame({"sentence_id": ids, "embedding": table.astype(np.float32)}))
    given = {"first": refs[0], "second": refs[1], "names": ("old", "new"), "sets": {"small-de/test": sets[0]}}
    with pytest.raises(EvaluationError, match=message):
        compare(site, **{**given, "config": BootstrapConfig(resamples=100)})
