"""The stage of transfer tasks turns sets and embeddings into named scores."""

import hashlib

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import EmbeddingsRef
from bsl.storage.artifacts.schemas import SCORES
from bsl.storage.errors import SourceError
from bsl.tasks.evaluation.kinds import score
from bsl.tasks.evaluation.transfer import TransferKind
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows

HOW = {"kind": TransferKind.title, "probe": ProbeConfig(folds=3), "bootstrap": BootstrapConfig(resamples=100)}
WORDS = {0: ["dull", "stale", "flat"], 1: ["fresh", "bright", "keen"]}


def text(row: int, label: int) -> str:
    return f"{WORDS[label][row % 3]} film number {row}"


@pytest.fixture
def site(tmp_path, monkeypatch):
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
    return RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path / "mirror"), device="cpu", threads=1)


def vector(sentence: str) -> list[float]:
    """Return a vector with the class of the sentence's first word, plus noise from the sentence's hash."""
    noise = np.frombuffer(hashlib.sha256(sentence.encode()).digest()[:7], dtype=np.uint8) / 255 - 0.5
    return [9.0 if sentence.split()[0] in WORDS[1] else -9.0, *noise.tolist()]


def embed_sentences(site: RunContext, texts: pl.Series) -> EmbeddingsRef:
    ref = EmbeddingsRef(key="0" * 64)
    unique = texts.unique().to_frame("text").with_columns(sentence_id=sentence_ids(pl.col("text"))).sort("sentence_id")
    table = np.array([vector(sentence) for sentence in unique["text"]], dtype=np.float32)
    with site.open_store().draft(ref, Provenance(stage_version=1, config={}, inputs={}, run="")) as draft:
        draft.write(unique.select("sentence_id", embedding=pl.Series(table)))
    return ref


def test_transfer_sets_are_scored_under_both_protocols(site):
    sets = tuple(TransferKind().find(site, name) for name in ("mr", "mrpc"))
    embeddings = embed_sentences(site, pl.concat([one.sentences() for one in sets]))
    arguments = {
        "embeddings": embeddings,
        "model": "m",
        "checkpoint": "c",
        "sets": sets,
        **HOW,
    }
    scores = site.open_store().scan(score(site, **arguments)).collect()
    assert scores.schema == SCORES
    figures = {(row["dataset"], row["metric"], row["protocol"]): row for row in scores.to_dicts()}
    assert len(figures) == scores.height == 6  # MR: accuracy; MRPC: accuracy and F1; each twice
    # A sentence's class is one feature; of a pair it is a distance. So both can be learnt.
    assert figures["mr", "accuracy", "fast"]["value"] == 1.0
    assert figures["mrpc", "accuracy", "fast"]["value"] == 1.0
    assert figures["mrpc", "f1", "fast"]["value"] == 1.0
    assert figures["mr", "accuracy", "senteval"]["value"] >= 0.95
    assert figures["mr", "accuracy", "fast"]["n"] == 60
    assert figures["mrpc", "f1", "senteval"]["n"] == 30
    assert set(scores["seed"]) == {1111}
    assert (scores["ci_low"] <= scores["value"]).all()


def test_missing_embedding_error_names_set_and_row(site):
    mr, mrpc = (TransferKind().find(site, name) for name in ("mr", "mrpc"))
    embeddings = embed_sentences(site, mr.sentences().head(10))
    arguments = {
        "embeddings": embeddings,
        "model": "m",
        "checkpoint": "c",
        "sets": (mr, mrpc),
        **HOW,
    }
    with pytest.raises(SourceError, match="mr all: the sentence of row 11 has no vector"):
        score(site, **arguments)
