"""Argument Facet Similarity: the official format, folds with and without shared sentences, scores by topic."""

import csv

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.afs import afs_folds, afs_scores
from bsl.models.evaluation.config import FOLDS_OF, BootstrapConfig
from bsl.models.training.config import AFS_CONFIG, AFS_CROSS_CONFIG
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import EmbeddingsRef
from bsl.storage.errors import SourceError
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.evaluation.afs import AfsKind, AfsSet, find_afs_set, read_afs_set
from bsl.tasks.evaluation.finetuning.afs import predict_afs, score_afs_predictions
from bsl.tasks.evaluation.finetuning.finetune import FineTuning
from bsl.tasks.evaluation.kinds import score
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

HEADER = ["regular_data", "gold", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "sentence_1", "sentence_2"]
TEXTS = ORIGINALS + BACK_DE + BACK_FR
DRAWS = BootstrapConfig(resamples=100)


def record(score: object, one: str, two: str) -> list[str]:
    return [str(score), *"abcdefgh", one, two]


def write_topic(folder, topic: str, records: list[list[str]]) -> None:
    with (folder / f"ArgPairs_{topic}.csv").open("w", encoding="iso-8859-1", newline="") as file:
        csv.writer(file).writerows([HEADER, *records])


@pytest.fixture
def folder(tmp_path):
    """Write eight pairs per topic: a sentence with its own round trip (5, 4.5), or with another's (0 to 1)."""
    (tmp_path / "afs").mkdir()
    for number, topic in enumerate(("GC", "GM", "DP")):
        records = []
        for row in range(8):
            same = row % 2 == 0
            two = (BACK_DE, BACK_FR)[number % 2][(row // 2 if same else row // 2 + 1) % 4]
            records.append(record((5 - row / 8) if same else row / 8, f"{ORIGINALS[row // 2]} ({topic} {row})", two))
        write_topic(tmp_path / "afs", topic, records)
    return tmp_path / "afs"


def found_in(folder) -> AfsSet:
    return find_afs_set(RunContext(mirror=str(folder.parent)))


def test_official_afs_format_is_read(tmp_path):
    (tmp_path / "afs").mkdir()
    for topic in ("GC", "GM", "DP"):
        write_topic(tmp_path / "afs", topic, [record(2.5, ' Guns, "he" said \n twice', "café ")])
    pairs = read_afs_set(found_in(tmp_path / "afs"))
    assert pairs.row(0) == ("GC", 2.5, 'Guns, "he" said \n twice', "café")
    assert pairs["topic"].to_list() == ["GC", "GM", "DP"]
    assert found_in(tmp_path / "afs").sentences().len() == 6


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (record(5.5, "a", "b"), "GC.csv, line 3: score '5.5', expected a number from 0 to 5"),
        (record("x", "a", "b"), "line 3: score 'x'"),
        (record(1, "a", "b")[1:], "line 3: 10 columns, expected 11"),
        (record(1, "a", " "), "line 3: a sentence is blank"),
    ],
)
def test_invalid_afs_record_error_names_file_and_line(folder, bad, words):
    write_topic(folder, "GC", [record(1, "a", "b"), bad])
    with pytest.raises(SourceError, match=words):
        read_afs_set(found_in(folder))


def test_field_over_the_csv_size_limit_raises_an_error(folder):
    write_topic(folder, "GC", [record(1, "a", "b"), record(1, "a", "b" * 200_000)])
    before = csv.field_size_limit(131_072)  # CSV readers raise it
    try:
        with pytest.raises(
            SourceError, match=r"line 3: field larger than field limit \(131072\)\. Copy the file again"
        ):
            read_afs_set(found_in(folder))
    finally:
        csv.field_size_limit(before)


def test_missing_topic_file_is_named_in_the_error(folder):
    (folder / "ArgPairs_GM.csv").unlink()
    with pytest.raises(SourceError, match=r"ArgPairs_GM.csv: no such file"):
        found_in(folder)


def many_pairs(count: int = 300, sentences: int = 400) -> pl.DataFrame:
    random = np.random.default_rng(0)
    one, two = random.integers(0, sentences, (2, count))
    return pl.DataFrame(
        {
            "topic": [("GC", "GM", "DP")[row % 3] for row in range(count)],
            "sentence1": [f"s{number}" for number in one],
            "sentence2": [f"s{number}" for number in two],
        }
    )


@pytest.mark.parametrize("protocol", ["10-fold", "10-fold-disjoint", "cross-topic"])
def test_afs_folds_test_each_pair_once_without_training_overlap(protocol):
    pairs = many_pairs()
    folds = afs_folds(pairs, protocol, seed=0)
    assert len(folds) == FOLDS_OF[protocol]
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(pairs.height))
    leaks = 0
    for learnt, test in folds:
        assert not set(learnt) & set(test)
        seen, asked = (set(pairs[rows]["sentence1"]) | set(pairs[rows]["sentence2"]) for rows in (learnt, test))
        leaks += len(seen & asked)
        if protocol == "cross-topic":
            assert len(set(pairs[test]["topic"])) == 1
            assert not set(pairs[test]["topic"]) & set(pairs[learnt]["topic"])
    assert (leaks == 0) == (protocol == "10-fold-disjoint")


def test_afs_folds_depend_on_the_seed():
    first, again, other = (afs_folds(many_pairs(), "10-fold", seed)[0][1].tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_disjoint_folds_raise_when_all_pairs_share_a_sentence():
    pairs = many_pairs(20).with_columns(sentence1=pl.lit("the same"))
    with pytest.raises(EvaluationError, match="afs 10-fold-disjoint: fold 0 has 0 training pairs"):
        afs_folds(pairs, "10-fold-disjoint", seed=0)


def test_afs_scores_match_scipy_per_topic_and_average():
    random = np.random.default_rng(1)
    pairs = pl.DataFrame(
        {
            "topic": np.repeat(["GC", "GM", "DP"], 50),
            "gold": random.integers(0, 6, 150).astype(float),
            "cosine": random.normal(size=150),
        }
    )
    table = afs_scores(pairs, "unsupervised", resamples=100)
    assert table.height == 8
    for metric, reference in (("pearson", pearsonr), ("spearman", spearmanr)):
        rows = {row["subset"]: row for row in table.filter(metric=metric).to_dicts()}
        expected = {
            topic: reference(*(pairs.filter(topic=topic)[name] for name in ("gold", "cosine"))).statistic
            for topic in ("GC", "GM", "DP")
        }
        for topic, value in expected.items():
            assert rows[topic]["value"] == pytest.approx(value, abs=1e-12)
        assert rows["mean"]["value"] == pytest.approx(np.mean(list(expected.values())), abs=1e-12)
        assert rows["mean"]["protocol"] == "unsupervised"
        assert (rows["mean"]["n"], rows["GC"]["n"]) == (150, 50)


def test_afs_scores_refuse_a_single_topic():
    pairs = pl.DataFrame({"topic": ["GC"] * 3, "gold": [0.0, 1, 2], "cosine": [0.0, 2, 1]})
    with pytest.raises(EvaluationError, match=r"topics \['GC'\], expected at least two"):
        afs_scores(pairs, "unsupervised")


def test_afs_stages_score_frozen_and_fine_tuned_encoders(folder, tmp_path):
    site = RunContext(store=str(tmp_path / "store"), device="cpu", threads=1)
    store = site.open_store()
    arguments = found_in(folder)
    ref = EmbeddingsRef(key="0" * 64)
    unique = arguments.sentences().unique(maintain_order=True).to_frame("text")
    table = np.random.default_rng(0).normal(size=(unique.height, 4)).astype(np.float32)
    with store.draft(ref, Provenance(stage_version=1, config={}, inputs={}, run="")) as draft:
        draft.write(unique.select(sentence_ids(pl.col("text")).alias("sentence_id"), embedding=pl.Series(table)))
    common = {"model": "m", "checkpoint": "", "config": DRAWS}
    frozen = store.scan(score(site, ref, "m", "", AfsKind.title, (arguments,), DRAWS, None)).collect()
    assert frozen["subset"].unique(maintain_order=True).to_list() == ["GC", "GM", "DP", "mean"]

    tuning = FineTuning(
        encoder=resolve_model(str(write_tiny(tmp_path / "tiny", layers=1))),
        network=EncoderConfig(model="tiny", max_length=24),
        config=AFS_CONFIG.model_copy(update={"batch_size": 8, "epochs": 8, "lr": 1e-2}),
    )
    predictions = tuple(
        predict_afs(
            site,
            tuning=tuning,
            arguments=arguments,
            protocol="cross-topic",
            fold=fold,
            seed=0,
        )
        for fold in range(3)
    )
    tuned = store.scan(
        score_afs_predictions(site, **{"predictions": predictions, "protocol": "cross-topic", **common})
    ).collect()
    mean = tuned.filter(subset="mean", metric="spearman")
    # The same pairs match in each topic, so two topics teach the third.
    assert mean["value"].item() > 0.5
    assert mean["protocol"].item() == "cross-topic"
    assert mean["n"].item() == 24


def test_cross_encoder_afs_scores_have_their_own_protocol_name(folder, tmp_path):
    site = RunContext(store=str(tmp_path / "store"), device="cpu", threads=1)
    tuning = FineTuning(
        encoder=resolve_model(str(write_tiny(tmp_path / "tiny", dropout=0.0))),  # it learns in half the steps
        network=EncoderConfig(model="tiny", max_length=24),
        config=AFS_CROSS_CONFIG.model_copy(update={"batch_size": 8, "epochs": 20, "lr": 3e-3}),
    )
    fold = {
        "tuning": tuning,
        "arguments": found_in(folder),
        "protocol": "cross-topic",
        "seed": 0,
    }
    predictions = tuple(predict_afs(site, **{**fold, "fold": number}) for number in range(3))
    store = site.open_store()
    scores = pl.concat([store.scan(ref).collect() for ref in predictions])["cosine"]
    assert scores.is_between(0, 1).all()  # the sigmoid, not a cosine
    common = {"model": "m", "checkpoint": "", "config": DRAWS}
    ref = score_afs_predictions(site, **{"predictions": predictions, "protocol": "cross-topic", **common})
    mean = store.scan(ref).collect().filter(subset="mean", metric="spearman")
    assert mean["value"].item() > 0.5
    assert mean["protocol"].item() == "cross-encoder-cross-topic"
    assert "|by:score|" in mean["signature"].item()
    assert "|vectors:cross-encoder|pool:cls|" in mean["signature"].item()
