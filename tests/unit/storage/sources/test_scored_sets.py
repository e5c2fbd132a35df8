"""Subsets of STS 2012 to 2016 are restored where a copy of the dataset lacks them."""

import os
from pathlib import Path

import polars as pl
import pytest

from bsl.storage.datasets.sts import STS
from bsl.storage.sources import scored_sets
from bsl.storage.sources.scored_sets import TABLE, digests, with_subsets

MIRROR = os.environ.get("BSL_DATA_MIRROR", "")
YEARS = ("sts12", "sts13", "sts14", "sts15", "sts16")
COUNTS = {  # Agirre et al., 2012 to 2016, as SentEval counts them
    "sts12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "sts13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "sts16": {
        "answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209
    },
}  # fmt: skip
real = pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror")


def test_subset_table_covers_every_declared_sts_subset():
    table = pl.read_parquet(TABLE)
    assert tuple(table["dataset"].cast(pl.String).unique().sort()) == YEARS
    for dataset in (dataset for dataset in STS if dataset.divided and dataset.folder):
        patterns = dataset.originals["test"]
        declared = {pattern.rpartition("STS.input.")[2].removesuffix(".txt") for pattern in patterns}
        assert set(table.filter(dataset=dataset.folder)["subset"].cast(pl.String)) == declared


@real
@pytest.mark.parametrize("side", ["", "_tok"])
@pytest.mark.parametrize("dataset", YEARS)
def test_sts_subsets_are_restored_from_raw_or_tokenised_pairs(dataset, side):
    real = pl.read_parquet(Path(MIRROR) / dataset / "test.parquet")
    bare = real.select(pl.lit("").alias("subset"), *(pl.col(f"{n}{side}").alias(n) for n in ("sentence1", "sentence2")))
    restored = with_subsets(dataset, bare)
    assert restored["subset"].equals(real["subset"], null_equal=False, check_names=False)
    counts = dict(restored["subset"].value_counts().iter_rows())
    assert counts == COUNTS.get(dataset, counts)


def test_subset_lookup_uses_both_sentences_and_ignores_punctuation(tmp_path, monkeypatch):
    pairs = pl.DataFrame({"sentence1": ["A dog.", "A cat.", "A dog."], "sentence2": ["A cat.", "A dog.", "A cat."]})
    known = pairs.head(2).select(
        digests(pairs.head(2)), subset=pl.Series(["images", "belief"]), dataset=pl.lit("sts15")
    )
    other = known.with_columns(dataset=pl.lit("sts14"), subset=pl.lit("OnWN"))
    pl.concat([other, known]).cast({"dataset": pl.Categorical, "subset": pl.Categorical}).write_parquet(
        tmp_path / "subsets.parquet"
    )
    monkeypatch.setattr(scored_sets, "TABLE", tmp_path / "subsets.parquet")
    spelled = pairs.with_columns(pl.lit("").alias("subset"), pl.col("sentence1").str.replace(".", " !", literal=True))
    assert with_subsets("sts15", spelled)["subset"].to_list() == ["images", "belief", "images"]


def test_unknown_sts_pair_restores_no_subsets_with_a_warning(caplog):
    pairs = pl.DataFrame({"subset": [""], "sentence1": ["Not of any task."], "sentence2": ["Nor this one."]})
    assert with_subsets("sts12", pairs).equals(pairs)
    assert "sts12: 1 of 1 pairs are not in the task's files" in caplog.text
