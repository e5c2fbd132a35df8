"""`bsl evaluate` scores two small encoders on STS-B's test set, compares and reuses them, and names missing sets."""

import re

import polars as pl
import pytest
from huggingface_hub import constants

from bsl.flows.cli.main import main
from bsl.flows.evaluation import evaluation
from bsl.models.encoder.tfidf import TfIdf
from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
from bsl.storage.datasets.registry import ALL, DATASETS, OTHER_SETS, suites_of
from bsl.storage.errors import SourceError
from bsl.tasks.corpus.evaluation_sets import rows_of, unique_sentences
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.kinds import KINDS, available
from tests.tiny_encoder import write_tiny
from tests.toy_sets import allow_any_rows

SUITE = ["embedded:stsb/test", "stsb-mt/test"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [str(write_tiny(folder / name, seed=seed)) for seed, name in enumerate(("one", "two"))]


@pytest.fixture(scope="module")
def evaluated(site, models):
    return evaluation(models, SUITE, None, site)


def test_evaluation_scores_and_compares_encoders_and_reports_missing_sets(store, models, evaluated):
    scores = store.scan(evaluated, "scores").collect()
    assert sorted(scores["model"].unique()) == sorted("/".join(model.split("/")[-2:]) for model in models)
    assert scores["dataset"].unique().to_list() == ["stsb"]  # the missing set has no row, above all no 0
    assert scores["n"].unique().to_list() == [1379]
    assert "| stsb-mt/test | " in (store.fetch(evaluated) / "evaluation.md").read_text()
    (row,) = store.scan(evaluated, "comparison").collect().filter(metric="spearman").to_dicts()
    first, second = scores.filter(metric="spearman")["value"]
    assert row["value"] == pytest.approx(second - first)
    assert row["ci_low"] <= row["value"] <= row["ci_high"]


def test_evaluation_without_available_sets_raises_source_error(site, models):
    with pytest.raises(SourceError, match=r"none of the sets is available: .*'stsb-mt'"):
        evaluation(models[:1], ["stsb-mt/test"], None, site)
    with pytest.raises(SourceError, match=r"The package contains this set: embedded:stsb/test\.$"):
        evaluation(models[:1], ["stsb/test"], None, site)
    with pytest.raises(SourceError, match=r"/none: no such folder"):  # the encoder is named first
        evaluation([f"{models[0]}/none"], ["stsb-mt/test"], None, site)


@pytest.mark.usefixtures("named_server", "evaluated")
@pytest.mark.parametrize(
    ("suite", "code", "said"),
    [
        (SUITE, 1, ["missing: stsb-mt/test: ", "Semantic textual similarity", "bsl artifacts export evaluation/"]),
        (["embedded:stsb/dev", "stsb-mt/test"], 1, ["stsb dev"]),
        (["sts17", SUITE[0]], 0, ["missing: sts17-en-en/test, sts17-es-es/test", "the Hub does not answer"]),
    ],
    ids=["a named set is missing", "no column of a paper's table", "a set of a suite is missing"],
)
def test_evaluate_command_prints_scores_and_missing_sets(site, models, capsys, monkeypatch, suite, code, said):
    rows_of.cache_clear()  # an earlier test may have read sets of the same commits
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    assert main(["evaluate", models[0], "--suite", *suite, "--device", "cpu", "--store", site.store]) == code
    out = capsys.readouterr().out
    assert [words for words in said if words not in out] == []
    assert ("Semantic textual similarity" in out) == (SUITE[0] in suite)


def test_names_without_a_dataset_are_declared_and_suites_are_in_the_help(capsys):
    names = {name for kind in KINDS for name in (*kind.names, *kind.suites)}
    datasets = {*DATASETS, *suites_of(DATASETS.values())}
    undeclared = {name for name in names if ":" not in name and name.partition("/")[0] not in datasets}
    assert undeclared == {*OTHER_SETS}
    assert main(["evaluate", "--help"]) == 0
    words = set(re.findall(r"[a-z0-9-]+", capsys.readouterr().out))
    assert {*suites_of(DATASETS.values()), ALL, *OTHER_SETS} - words == set()


def test_tfidf_without_known_words_gets_no_score(tmp_path, site, monkeypatch):
    allow_any_rows(monkeypatch, "sts17-ar-ar")
    pairs = pl.DataFrame({"sentence1": ["a b", "c"], "sentence2": ["a", "d"], "score": [4.0, 1.0]})
    (tmp_path / "sts17-ar-ar").mkdir()
    pairs.write_parquet(tmp_path / "sts17-ar-ar" / "test.parquet")
    sets = available(site.model_copy(update={"mirror": str(tmp_path)}), ["sts17-ar-ar/test"])
    texts = unique_sentences(sets.embedded())
    table = TfIdf([["zzz"]]).vectors(texts["text"].to_list())
    words = Vectors("words", dict(zip(texts["sentence_id"], range(texts.height), strict=True)), {}, table)
    ((kind, scored),) = sets.frozen()
    assert kind.figures(scored, words, ScoringConfig(bootstrap=BootstrapConfig(resamples=100))).is_empty()
