"""Two systems on several sets: the paired bootstrap of each set, and of the mean of the test sets."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of, figure_of, mean_draws
from bsl.models.evaluation.sweep import MEAN
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
    site, sets = sets
    refs, ref = compared(site, sets, drawn_by(0), drawn_by(1))
    store = site.open_store()
    rows = store.scan(ref).collect()
    assert rows.select("dataset", "split", "n").rows() == [
        ("one", "test", PAIRS), ("one", "dev", PAIRS), ("two", "test", PAIRS), (MEAN, "test", 2 * PAIRS),
    ]  # fmt: skip
    named = rows.select("model", "reference", "metric", "subset").unique().rows()
    assert named == [("new", "old", "spearman", "all")]

    systems = [open_vectors(store, ref) for ref in refs]
    cosines = {name: [cosines_of(vectors, own) for vectors in systems] for name, own in sets.items()}

    def draws(name, system, seed):
        gold = read_scored_set(sets[name])["score"].to_numpy()
        return draws_of(gold, cosines[name][system][None], resamples=DRAWN.resamples, seed=seed)

    expected = [difference_of(*(draws(name, system, DRAWN.seed) for system in (0, 1))) for name in NAMES]
    means = [
        mean_draws([draws(name, system, DRAWN.seed + number) for number, name in enumerate(TESTS)]) for system in (0, 1)
    ]
    found = rows.select("value", "ci_low", "ci_high", "p_value").rows()
    assert found == [(one.value, one.ci_low, one.ci_high, one.p_value) for one in (*expected, difference_of(*means))]
    figures = store.scan(ref, "compared").filter(dataset=MEAN).select("model", "value", "ci_low", "ci_high").collect()
    each = [figure_of(mean) for mean in means]
    assert figures.rows() == [
        (n, one.mean, one.ci_low, one.ci_high) for n, one in zip(("old", "new"), each, strict=True)
    ]
    stored = store.scan(ref, "cosines").collect()
    for name in NAMES:
        dataset, _, split = name.partition("/")
        for system, model in enumerate(("old", "new")):
            column = stored.filter(dataset=dataset, split=split, model=model).sort("row")["cosine"]
            np.testing.assert_array_equal(column, cosines[name][system])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, r"^one test, embeddings/1+ \(first scores = gold, second = cosine\): all 60 values of the second"),
        (np.nan, r"^one test, embeddings/.*: the first vector of the pair in row 0 is not finite"),
    ],
)
def test_compare_error_names_constant_or_non_finite_embeddings(sets, value, message):
    site, sets = sets
    with pytest.raises(EvaluationError, match=message):
        compared(site, sets, drawn_by(0), lambda count: np.full((count, 4), value))
