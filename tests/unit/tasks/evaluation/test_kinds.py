"""The table of evaluation kinds: suites, columns, and a new kind as one line."""

import polars as pl
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from bsl.flows.cli.terminal.checks import check_sets
from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
from bsl.models.evaluation.sweep import SetDraws
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError
from bsl.tasks.corpus.evaluation_sets import ScoredSet, read_scored_set, resolve_scored_set, rows_of
from bsl.tasks.evaluation import kinds
from bsl.tasks.evaluation.finetuning.sts import SupervisedPairs
from bsl.tasks.evaluation.kinds import (
    KINDS,
    available,
    have_mean,
    names_of,
    shared_names,
    suites,
    tables,
    tuned_names,
)
from bsl.tasks.evaluation.python_api import evaluate
from bsl.tasks.evaluation.sts import units_of
from bsl.tasks.stage.run_context import RunContext
from tests.every import every
from tests.toys.tasks.evaluation.toy import ToyKind

YEARS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
PROBES = ("mr", "cr", "subj", "mpqa", "sst2", "sst5", "trec", "mrpc")
TRACKS = ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr", "es-en", "fr-en", "it-en", "nl-en", "ko-ko")


def words(texts):
    """Bag-of-words counts: a real, if poor, encoder."""
    return HashingVectorizer(n_features=2**12, alternate_sign=False).transform(texts).toarray() + 1e-3


def test_suites_list_sets_in_the_order_of_the_papers():
    known = suites()
    assert known["sts"] == tuple(f"{name}/test" for name in YEARS)
    assert known["sts-tok"] == tuple(f"{name}-tok/test" for name in YEARS)
    assert known["sts17"] == tuple(f"sts17-{track}/test" for track in TRACKS)
    assert known["sts17-bsl"] == known["sts17"][:8]
    assert known["senteval"] == PROBES
    assert known["afs"] == ("afs",)
    folds = ("10-fold", "10-fold-disjoint", "cross-topic")
    crossed = ("stsb-cross-encoder", *(f"afs-cross-encoder-{protocol}" for protocol in folds))
    assert tuned_names() == ("stsb-supervised", *(f"afs-{protocol}" for protocol in folds), *crossed)
    assert len(names_of(["all"])) == 7 + 7 + 11 + 8 + 1  # no protocol that fine-tunes


def test_every_set_name_belongs_to_a_single_kind_and_passes_the_quick_check():
    for kind in KINDS:
        assert kind.names
        assert all([other for other in KINDS if other.knows(name)] == [kind] for name in kind.names)
    check_sets([*suites(), "all", *(name for kind in KINDS for name in kind.names if ":" not in name)], RunContext())
    assert names_of(["sts17", "sts17-en-en/test"]) == names_of(["sts17"])


@every(
    [
        (("labels:rows.csv", "labels:./rows.csv", "labels:.//rows.csv"), "labels:rows.csv"),
        (("labels:a/./b.csv#label=x/./y", "labels:a//b.csv#label=x/./y"), "labels:a/b.csv#label=x/./y"),
        (("own:letters/", "own:./letters"), "own:letters"),
        (("own:s3://bucket//a/", "own:s3://bucket//a/"), "own:s3://bucket//a/"),
        (("own:embedded:nli-sample",), "own:embedded:nli-sample"),
    ]
)
def test_file_with_two_spellings_is_one_set(spellings, name):
    """Regression: it was scored and compared twice."""
    assert names_of(spellings) == (name,)


def test_tables_have_the_columns_of_the_papers():
    drawn = {table.title: [heading for _, heading in table.columns] for table in tables()}
    assert drawn["SentEval transfer"] == ["MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC"]
    assert drawn["STS 2017, other tracks"] == ["IT-EN", "NL-EN", "KO-KO"]
    assert drawn["Argument facet similarity"] == ["GC", "GM", "DP"]


def test_fine_tuning_sets_are_read_but_not_embedded():
    site = RunContext(mirror=str(embedded_path("stsb").parent))
    found = available(site, ["stsb-supervised", "stsb/dev"])
    assert isinstance(found.sets["stsb-supervised"], SupervisedPairs)
    assert found.sets["stsb-supervised"].sentences().len() == 2 * (5749 + 1500 + 1379)
    assert found.embedded() == (found.sets["stsb/dev"],)
    assert [kind.names for kind, _ in found.tuned()] == [("stsb-supervised",)]


@pytest.mark.usefixtures("hub")
def test_packaged_copy_of_a_found_set_is_the_same_set(tmp_path):
    """Regression: STS-B was twice in a mean of test sets."""
    both = ["stsb/test", "embedded:stsb/test", "stsb/dev"]
    assert list(available(RunContext(mirror=str(embedded_path("stsb").parent)), both).sets) == [both[0], both[2]]
    without = available(RunContext(mirror=str(tmp_path)), both, skip_failed_downloads=True)
    assert list(without.sets) == [both[1]]
    assert list(without.missing) == [both[2]]
    assert shared_names([both[1:], [both[0], "sts12/test"]]) == [both[1]]  # as of runs with and without a mirror


@pytest.fixture
def one_more(monkeypatch):
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, ToyKind()))
    rows_of.cache_clear()


@pytest.mark.usefixtures("one_more")
def test_added_kind_is_available_in_suites_and_evaluate():
    assert names_of(["toys"]) == ("toy",)
    assert names_of(["all"])[-1] == "toy"
    with pytest.raises(kinds.UnknownSuiteError, match=r"Did you mean 'toys'.*Suites: .*toys, all"):
        names_of(["toyes"])
    config = ScoringConfig(bootstrap=BootstrapConfig(resamples=100))
    found = evaluate(words, ["toys", "embedded:stsb/dev"], RunContext(), config).scores
    assert found.filter(dataset="toy")["value"].item() > 0.3
    assert found["dataset"].unique(maintain_order=True).to_list() == ["stsb", "toy"]
    assert rows_of.cache_info().misses == 2  # each set is read once


def test_available_explains_only_the_first_of_many_missing_sets(tmp_path):
    site = RunContext(mirror=str(tmp_path))
    with pytest.raises(
        SourceError, match=r"^none of the sets is available: dataset 'stsb-mt'.*Also missing: 1 more\.$"
    ):
        available(site, ["stsb-mt/test", "afs"])
    with pytest.raises(SourceError, match="no set is named"):
        available(site, [])


def test_rows_of_the_same_pairs_are_drawn_together_in_translations_and_tokenised_text():
    scored = resolve_scored_set(RunContext(), "embedded:stsb-mt/dev")
    pairs = read_scored_set(scored).group_by(pl.Series("unit", units_of(scored)))
    counts = pairs.agg(pl.len(), pl.col("sentence1", "score").n_unique()).drop("unit").unique().rows()
    assert counts == [(3, 1, 1)]
    assert units_of(resolve_scored_set(RunContext(), "embedded:stsb/dev")) is None
    places = (("sts12", "test"), ("stsb", "dev"), ("stsb", "test"), ("sts12-tok", "test"), ("sts13", "test"))
    sets = {f"{name}/{split}": ScoredSet(dataset=name, split=split, source=scored.source) for name, split in places}
    assert [offset for _, _, offset in kinds.with_offsets(sets)] == [0, 1, 2, 0, 3]


@every(
    [
        ((("your text neighbour", ""), ("your text title", "")), True),
        ((("own:letters", "next"), ("own:letters", "title")), True),
        ((("stsb", "dev"), ("stsb", "test")), True),
        ((("sts13", "test"), ("sts13-tok", "test")), False),
        ((("stsb", "test"),), False),
    ]
)
def test_questions_about_one_text_have_a_mean_and_two_copies_of_a_set_have_none(sets, expected):
    """Regression: `bsl sweep own` without labels decides by the mean of its questions, which was missing."""
    draws = [SetDraws(dataset, "mrr", "text", (), split=split) for dataset, split in sets]
    assert have_mean(draws) == expected
