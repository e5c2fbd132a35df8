"""Argument Facet Similarity: the official format, folds with and without shared sentences, scores by topic."""

import csv

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.afs import afs_folds, afs_scores
from bsl.models.evaluation.config import FOLDS_OF, BootstrapConfig
from bsl.models.training.config import AFS_CROSS_CONFIG
from bsl.storage.errors import SourceError
from bsl.storage.readers.benchmarks.afs import TOPICS
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.evaluation.afs import find_afs_set, read_afs_set
from bsl.tasks.evaluation.finetuning.afs import predict_afs, score_afs_predictions
from bsl.tasks.evaluation.finetuning.finetune import FineTuning
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, write_tiny

DRAWS = BootstrapConfig(resamples=100)


def record(score, one, two):
    return [str(score), *"abcdefgh", one, two]


def write_topic(folder, topic, records):
    with (folder / f"ArgPairs_{topic}.csv").open("w", encoding="iso-8859-1", newline="") as opened:
        csv.writer(opened).writerows([[f"column {n}" for n in range(11)], *records])


@pytest.fixture
def afs(site, tmp_path):
    """Write eight pairs a topic: a sentence with its own round trip (5, 4.5 …), or with another's (0 to 1).

    Return a function that replaces the records of topics, and finds the set.
    """
    folder = tmp_path / "afs"
    folder.mkdir()
    for number, topic in enumerate(TOPICS):
        records = []
        for row in range(8):
            is_same, two = row % 2 == 0, (BACK_DE, BACK_FR)[number % 2][(row + 1) // 2 % 4]
            records.append(record(5 - row / 8 if is_same else row / 8, f"{ORIGINALS[row // 2]} ({topic} {row})", two))
        write_topic(folder, topic, records)

    def call(**changed):
        for topic, records in changed.items():
            write_topic(folder, topic, records)
        return find_afs_set(site.model_copy(update={"mirror": str(tmp_path)}))

    return call


def test_official_afs_format_is_read(afs):
    found = afs(**{topic: [record(2.5, ' Guns, "he" said \n twice', "café ")] for topic in TOPICS})
    pairs = read_afs_set(found)
    assert pairs.row(0) == ("GC", 2.5, 'Guns, "he" said \n twice', "café")
    assert pairs["topic"].to_list() == ["GC", "GM", "DP"]
    assert found.sentences().len() == 6


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (record(5.5, "a", "b"), "GC.csv, line 3: score '5.5', expected a number from 0 to 5"),
        (record("x", "a", "b"), "line 3: score 'x'"),
        (record(1, "a", "b")[1:], "line 3: 10 columns, expected 11"),
        (record(1, "a", " "), "line 3: a sentence is blank"),
        (record(1, "a", "b" * 200_000), r"line 3: field larger than field limit \(131072\)\. Copy the file again"),
    ],
)
def test_invalid_afs_record_error_names_file_and_line(afs, tmp_path, bad, words):
    before = csv.field_size_limit(131_072)  # CSV readers raise it
    try:
        with pytest.raises(SourceError, match=words):
            read_afs_set(afs(GC=[record(1, "a", "b"), bad]))
    finally:
        csv.field_size_limit(before)
    (tmp_path / "afs" / "ArgPairs_GM.csv").unlink()
    with pytest.raises(SourceError, match=r"ArgPairs_GM.csv: no such file"):
        afs()


def many_pairs(count=300, sentences=400):
    sides = np.random.default_rng(0).integers(0, sentences, (2, count))
    texts = {f"sentence{side + 1}": [f"s{number}" for number in sides[side]] for side in (0, 1)}
    return pl.DataFrame({"topic": [TOPICS[row % 3] for row in range(count)], **texts})


@pytest.mark.parametrize("protocol", FOLDS_OF)
def test_afs_folds_test_each_pair_once_without_training_overlap(protocol):
    pairs = many_pairs()
    folds = afs_folds(pairs, protocol, seed=0)
    assert len(folds) == FOLDS_OF[protocol]
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(pairs.height))
    leaks = 0
    for learnt, test in folds:
        assert not set(learnt) & set(test)
        seen, asked = ({*pairs[rows]["sentence1"], *pairs[rows]["sentence2"]} for rows in (learnt, test))
        leaks += len(seen & asked)
        if protocol == "cross-topic":
            assert len(set(pairs[test]["topic"])) == 1
            assert not set(pairs[test]["topic"]) & set(pairs[learnt]["topic"])
    assert (leaks == 0) == (protocol == "10-fold-disjoint")


def test_afs_folds_depend_on_the_seed_and_need_training_pairs():
    first, again, other = (afs_folds(many_pairs(), "10-fold", seed)[0][1].tolist() for seed in (1, 1, 2))
    assert first == again != other
    pairs = many_pairs(20).with_columns(sentence1=pl.lit("the same"))
    with pytest.raises(EvaluationError, match="afs 10-fold-disjoint: fold 0 has 0 training pairs"):
        afs_folds(pairs, "10-fold-disjoint", seed=0)


def test_afs_scores_match_scipy_per_topic_and_average():
    random = np.random.default_rng(1)
    gold, cosines = random.integers(0, 6, 150).astype(float), random.normal(size=150)
    pairs = pl.DataFrame({"topic": np.repeat(TOPICS, 50), "gold": gold, "cosine": cosines})
    table = afs_scores(pairs, "unsupervised", resamples=100)
    assert table.height == 8
    for metric, reference in (("pearson", pearsonr), ("spearman", spearmanr)):
        rows = {row["subset"]: row for row in table.filter(metric=metric).to_dicts()}
        sides = [(gold[start : start + 50], cosines[start : start + 50]) for start in (0, 50, 100)]
        expected = [reference(*both).statistic for both in sides]
        assert [rows[topic]["value"] for topic in TOPICS] == pytest.approx(expected, abs=1e-12)
        assert rows["mean"]["value"] == pytest.approx(np.mean(expected), abs=1e-12)
        assert rows["mean"]["protocol"] == "unsupervised"
        assert (rows["mean"]["n"], rows["GC"]["n"]) == (150, 50)
    with pytest.raises(EvaluationError, match=r"topics \['GC'\], expected at least two"):
        afs_scores(pairs.head(50), "unsupervised")


def test_cross_encoder_is_fine_tuned_on_two_topics_and_scored_on_the_third(afs, site, tmp_path):
    """tests/golden pins the same of cosines."""
    tuning = FineTuning(
        encoder=resolve_model(str(write_tiny(tmp_path / "tiny", dropout=0.0, layers=2))),
        network=EncoderConfig(model="tiny", max_length=24),
        config=AFS_CROSS_CONFIG.model_copy(update={"epochs": 20, "lr": 3e-3, "batch_size": 8}),
    )
    folds = tuple(predict_afs(site, tuning, afs(), "cross-topic", fold, 0) for fold in range(3))
    store = site.open_store()
    assert all(store.scan(ref).collect()["cosine"].is_between(0, 1).all() for ref in folds)  # sigmoids, not cosines
    mean = store.scan(score_afs_predictions(site, folds, "cross-topic", "m", "", DRAWS)).collect()
    (row,) = mean.filter(subset="mean", metric="spearman").rows(named=True)
    assert row["value"] > 0.5  # the same pairs match in each topic, so two topics teach the third
    assert (row["protocol"], row["n"]) == ("cross-encoder-cross-topic", 24)
    assert "|by:score|" in row["signature"]
    assert "|vectors:cross-encoder|pool:cls|" in row["signature"]
