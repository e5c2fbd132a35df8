"""Two systems on several sets: the paired bootstrap of each set, and of the mean of the test sets."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.significance.hierarchical import draws_of, figure_of, mean_draws
from bsl.models.evaluation.sweep import MEAN
from bsl.storage.datasets.registry import DATASETS
from bsl.tasks.corpus.evaluation_sets import read_scored_set, resolve_scored_set, unique_sentences
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.comparison import compare
from bsl.tasks.evaluation.sts import cosines_of
from tests.corpora import publish_vectors

PAIRS = 60
DRAWN = BootstrapConfig(resamples=200, seed=3)
NAMES, TESTS = ("one/test", "one/dev", "two/test"), ("one/test", "two/test")


@pytest.fixture
def sets(declare):
    """Return two sets with random gold scores, one of which has a dev split, and their run context."""
    generator, tables = np.random.default_rng(0), {}
    for name in NAMES:
        sides = {f"sentence{side}": [f"{name} {side} {number}" for number in range(PAIRS)] for side in (1, 2)}
        tables[name] = pl.DataFrame({**sides, "score": generator.uniform(0, 5, PAIRS)})
    declare("one", test=tables["one/test"], dev=tables["one/dev"])
    site = declare("two", test=tables["two/test"])
    return site, {name: resolve_scored_set(site, name) for name in NAMES}


def compared(site, sets, *tables):
    texts = unique_sentences(tuple(sets.values()))["text"]
    made = [table(len(texts)) for table in tables]
    refs = [publish_vectors(site, texts, table, str(digit)) for digit, table in enumerate(made)]
    return refs, compare(site, *refs, ("old", "new"), sets, DRAWN)


def drawn_by(seed):
    return lambda count: np.random.default_rng(seed).normal(size=(count, 4))


def test_compare_pairs_differences_by_set_and_mean_excludes_dev(sets):
    """tests/golden pins the numbers."""
    site, sets = sets
    _, ref = compared(site, sets, drawn_by(0), drawn_by(1))
    store = site.open_store()
    rows = store.scan(ref).collect()
    assert rows.select("dataset", "split", "n").rows() == [
        ("one", "test", PAIRS), ("one", "dev", PAIRS), ("two", "test", PAIRS), (MEAN, "test", 2 * PAIRS),
    ]  # fmt: skip
    tests = rows.filter(pl.col("dataset") != MEAN, split="test")["value"]
    assert rows["value"][-1] == pytest.approx(tests.mean(), abs=1e-12)
    figures = store.scan(ref, "compared").collect().pivot("model", index=["dataset", "split"], values="value")
    assert (figures["new"] - figures["old"]).to_list() == pytest.approx(rows["value"].to_list(), abs=1e-12)


def test_sets_are_drawn_with_the_configured_seed_and_those_of_the_mean_with_the_next_ones(sets):
    site, sets = sets
    refs, ref = compared(site, sets, drawn_by(0), drawn_by(1))
    store = site.open_store()
    vectors = open_vectors(store, refs[1])

    def draws(name, offset):
        gold, cosines_SN = read_scored_set(sets[name])["score"].to_numpy(), cosines_of(vectors, sets[name])[None]
        return draws_of(gold, cosines_SN, resamples=DRAWN.resamples, seed=DRAWN.seed + offset)

    mean = mean_draws([draws(name, offset) for offset, name in enumerate(TESTS)])
    expected = [figure_of(found) for found in (*(draws(name, 0) for name in NAMES), mean)]
    found = store.scan(ref, "compared").filter(model="new").select("value", "ci_low", "ci_high").collect()
    assert found.rows() == [(figure.mean, figure.ci_low, figure.ci_high) for figure in expected]


def test_raw_and_tokenised_text_of_the_same_pairs_are_one_set_of_the_mean(sets, monkeypatch):
    """Regression: of sts13, sts13-tok and stsb, the mean was two thirds sts13."""
    site, sets = sets
    monkeypatch.setitem(DATASETS, "two", DATASETS["two"].model_copy(update={"folder": "one"}))
    _, ref = compared(site, sets, drawn_by(0), drawn_by(1))
    assert MEAN not in site.open_store().scan(ref).collect()["dataset"]


def test_compare_error_names_constant_embeddings(sets):
    site, sets = sets
    with pytest.raises(EvaluationError, match=r"^one test, embeddings/1+ .*: all 60 values of the second"):
        compared(site, sets, drawn_by(0), lambda count: np.ones((count, 4)))
