"""A run scores its encoder on sets of every kind: recipe `afs` at a small size, with a transfer task added."""

import csv

import polars as pl
import pytest

from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.storage.artifacts.store import Store
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.readers.benchmarks.afs import COLUMNS, TOPICS
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows

PAIRS = 24  # per topic
SMALL = {
    "augment": recipe("tiny").augment.model_dump(),
    "training": {"batch_size": 16, "max_steps": 3, "eval_every": 3, "collapse": None},
    "evaluation": {
        "sets": ["afs", "cr"],
        "dev": "embedded:stsb/dev",
        "bootstrap": {"resamples": 100},
        "probe": {"folds": 2, "max_epoch": 4},
    },
    "transform": {"name": "whitening", "dimensions": 32},
}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Write STS-B pairs in the official format of AFS, and their first sentences with two classes."""
    rows = pl.read_parquet(embedded_path("stsb") / "test.parquet").head(PAIRS * len(TOPICS))
    allow_any_rows(monkeypatch, "cr")
    (tmp_path / "mirror" / "afs").mkdir(parents=True)
    (tmp_path / "mirror" / "cr").mkdir()
    for topic, part in zip(TOPICS, rows.iter_slices(PAIRS), strict=True):
        path = tmp_path / "mirror" / "afs" / f"ArgPairs_{topic}.csv"
        with path.open("w", encoding="iso-8859-1", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([f"c{number}" for number in range(COLUMNS)])
            for one, two, score in part.select("sentence1", "sentence2", "score").iter_rows():
                writer.writerow([score, *[""] * (COLUMNS - 3), one, two])
    labelled = rows.select(text="sentence1", label=pl.col("score").gt(3).cast(pl.Int64)).unique(
        "text", keep="first", maintain_order=True
    )
    labelled.write_parquet(tmp_path / "mirror" / "cr" / "all.parquet")
    return str(tmp_path / "mirror")


@pytest.mark.slow
def test_afs_recipe_scores_every_system_on_every_evaluation_kind(mirror, shallow, tmp_path):
    store = Store(str(tmp_path / "store"))
    changes = {**SMALL, "encoder": {"model": str(shallow), "revision": None}}
    ref = pipeline("afs", changes, RunContext(store=store.url, mirror=mirror, device="cpu", threads=1))
    (corpus,) = (store.manifest(each) for each in store.refs("corpus"))
    assert corpus.rows > PAIRS * len(TOPICS)
    scores = store.scan(ref, "scores").collect()
    encoders = ["before BSL (mean)", "after BSL"]
    systems = sorted(["Unigram TF-IDF", *encoders, *(f"{name} + whitening (corpus)" for name in encoders)])
    for metric in ("pearson", "spearman", "accuracy"):
        assert sorted(scores.filter(metric=metric)["model"].unique()) == systems
    page = (store.fetch(ref) / "report.md").read_text()
    for part in (
        "| afs test: spearman, unsupervised |",
        ": accuracy, senteval |",
        "| BSL-BERT on AFS: BSL, Table 10 | published | – | – | – | 51.56 |",
        "| BSL-BERT on AFS: BSL, Table 10 | published | – | – | – | 50.47 |",
    ):
        assert part in page
    assert "## Differences" not in page
