"""The stage of transfer tasks turns sets and embeddings into named scores."""

import hashlib

import numpy as np
import polars as pl
import pytest

from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig
from bsl.storage.artifacts.schemas import SCORES
from bsl.storage.errors import SourceError
from bsl.tasks.evaluation.kinds import score
from bsl.tasks.evaluation.transfer import TransferKind
from tests.corpora import publish_vectors
from tests.toy_sets import allow_any_rows

HOW = {"kind": TransferKind.title, "probe": ProbeConfig(folds=3), "bootstrap": BootstrapConfig(resamples=100)}
WORDS = {0: ["dull", "stale", "flat"], 1: ["fresh", "bright", "keen"]}


def text(row: int, label: int) -> str:
    return f"{WORDS[label][row % 3]} film number {row}"


@pytest.fixture
def site(site, tmp_path, monkeypatch):
    allow_any_rows(monkeypatch, "mr", "mrpc")
    labels = [row % 2 for row in range(60)]
    one = pl.DataFrame({"text": [text(*item) for item in enumerate(labels)], "label": labels})
    pairs = pl.DataFrame(
        {
            "sentence1": one["text"],
            "sentence2": [text(row + 3, 1 if row % 4 < 2 else 0) for row in range(60)],
            "label": [int((row % 2 == 1) == (row % 4 < 2)) for row in range(60)],
        }
    )
    for name, splits in {"mr": {"all": one}, "mrpc": {"train": pairs, "test": pairs.head(30)}}.items():
        (tmp_path / "mirror" / name).mkdir(parents=True)
        for split, frame in splits.items():
            frame.write_parquet(tmp_path / "mirror" / name / f"{split}.parquet")
    return site.model_copy(update={"mirror": str(tmp_path / "mirror")})


def vector(sentence: str) -> list[float]:
    """Return a vector with the class of the sentence's first word, plus noise from the sentence's hash."""
    noise = np.frombuffer(hashlib.sha256(sentence.encode()).digest()[:7], dtype=np.uint8) / 255 - 0.5
    return [9.0 if sentence.split()[0] in WORDS[1] else -9.0, *noise.tolist()]


def scored(site, texts, *names):
    sets = tuple(TransferKind().find(site, name) for name in names)
    texts = pl.concat([one.sentences() for one in sets]).unique() if texts is None else texts
    embeddings = publish_vectors(site, texts, np.array([vector(sentence) for sentence in texts]))
    ref = score(site, embeddings=embeddings, model="m", checkpoint="c", sets=sets, **HOW)
    return site.open_store().scan(ref).collect()


def test_transfer_sets_are_scored_under_both_protocols(site):
    scores = scored(site, None, "mr", "mrpc")
    assert scores.schema == SCORES
    figures = {(row["dataset"], row["metric"], row["protocol"]): row for row in scores.to_dicts()}
    assert len(figures) == scores.height == 6  # MR: accuracy; MRPC: accuracy and F1; each twice
    # A sentence's class is one feature; of a pair it is a distance. So both can be learnt.
    assert {row["value"] for (_, _, protocol), row in figures.items() if protocol == "fast"} == {1.0}
    assert figures["mr", "accuracy", "senteval"]["value"] >= 0.95
    assert figures["mr", "accuracy", "fast"]["n"] == 60
    assert figures["mrpc", "f1", "senteval"]["n"] == 30
    assert set(scores["seed"]) == {1111}
    assert (scores["ci_low"] <= scores["value"]).all()


def test_missing_embedding_error_names_set_and_row(site):
    few = TransferKind().find(site, "mr").sentences().head(10)
    with pytest.raises(SourceError, match="mr all: the sentence of row 11 has no vector"):
        scored(site, few, "mr", "mrpc")
