"""The batched SentEval protocol equals the plain one fold by fold: float64 rounding changes no prediction."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import ProbeConfig
from bsl.models.evaluation.probe.problem import Part, make_problem
from bsl.models.evaluation.probe.search import DECAYS, STRENGTHS, probe
from tests.senteval_restated import Restated

PLAIN = Restated(folds=3, dtype=torch.float64, max_epoch=24, tenacity=2)
CONFIG = ProbeConfig(folds=3, max_epoch=24, tenacity=2)


def rows(n, width, classes, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    return (random.normal(size=(n, width)) + random.normal(size=(classes, width))[y]).astype(np.float32), y


def problem(layout, *parts, classes):
    splits = {"nested": ("all",), "kfold": ("train", "test"), "split": ("train", "dev", "test")}[layout]
    table = {name: Part(x, y, np.arange(len(y))) for name, (x, y) in zip(splits, parts, strict=True)}
    return make_problem(layout, layout, table, tuple(map(str, range(classes))), folds=3, seed=1111)


def same(outcomes, plain):
    assert len(outcomes) == len(plain)
    for ours, (scores, decay, predicted) in zip(outcomes, plain, strict=True):
        assert ours.dev == scores
        assert ours.penalty == decay
        np.testing.assert_array_equal(ours.predicted, predicted)


def scikit_learn(c, x, y, of):
    return LogisticRegression(C=c, solver="newton-cholesky", tol=1e-8).fit(x[of].astype(np.float64), y[of])


def test_batched_search_equals_plain_protocol_in_every_layout():
    # 150 and 131 rows: fits of unequal lengths and step counts, in one batch of two tasks of one shape.
    one, two = rows(150, 6, 2), rows(131, 6, 2, seed=1)
    train, test = rows(140, 5, 4, seed=2), rows(40, 5, 4, seed=3)
    dev = rows(33, 5, 4, seed=4)
    problems = [
        problem("nested", one, classes=2),
        problem("nested", two, classes=2),
        problem("kfold", train, test, classes=4),
        problem("split", train, dev, test, classes=4),
    ]
    found = probe(problems, "senteval", CONFIG, dtype=torch.float64)
    same(found[0], PLAIN.nested(*one, 2))
    same(found[1], PLAIN.nested(*two, 2))
    same(found[2], PLAIN.kfold(train, test, 4))
    same(found[3], PLAIN.split(train, dev, test, 4))


@pytest.mark.parametrize("units", [5, 6, 7])
def test_search_over_few_units_selects_like_scikit_learn_in_each_outer_fold(units):
    """Regression: of 6 units and 5 folds, an outer fold has 4 or 5 inner ones, and the search failed."""
    x, y = rows(120, 4, 2)
    unit = np.random.default_rng(2).permutation(np.arange(120) % units)
    task = make_problem("own", "nested", {"all": Part(x, y, np.arange(120), unit)}, ("a", "b"), folds=5, seed=1111)
    (outcomes,) = probe([task], "fast", ProbeConfig(folds=5, tolerance=1e-8))
    for outer, outcome in zip(task.folds, outcomes, strict=True):
        assert len(outer.inner) == min(5, len(np.unique(unit[outer.train])))
        means = tuple(
            round(
                100
                * np.mean([scikit_learn(c, x, y, fold.fit).score(x[fold.dev], y[fold.dev]) for fold in outer.inner]),
                2,
            )
            for c in STRENGTHS["nested"]
        )
        assert outcome.dev == means
        assert outcome.penalty == STRENGTHS["nested"][int(np.argmax(means))]


@pytest.mark.parametrize("other", [[1] * 6, [1, 2, 3, 4], [1, 1], [1]], ids=len)
def test_units_of_very_unequal_size_are_predicted_like_scikit_learn(other):
    """Regression: a fold without the large unit has fewer rows of each class than folds, and the search failed."""
    x, y = rows(40, 4, 2)
    y[-6:] = 0, 1, 0, 1, 0, 1
    unit = np.r_[np.zeros(40 - len(other), int), other]
    task = make_problem("own", "nested", {"all": Part(x, y, np.arange(40), unit)}, ("a", "b"), folds=5, seed=1111)
    (outcomes,) = probe([task], "fast", ProbeConfig(folds=5, tolerance=1e-8))
    assert sorted(np.concatenate([outer.test for outer in task.folds])) == list(range(40))
    for outer, outcome in zip(task.folds, outcomes, strict=True):
        found = (
            scikit_learn(outcome.penalty, x, y, outer.train).predict(x[outer.test])
            if len(np.unique(y[outer.train])) > 1
            else y[outer.train[:1]].repeat(len(outer.test))
        )
        np.testing.assert_array_equal(outcome.predicted, found)


def test_fewer_than_twenty_training_rows_are_rejected():
    task = problem("kfold", rows(19, 3, 2), rows(9, 3, 2), classes=2)
    with pytest.raises(EvaluationError, match="19 training rows, expected at least 20"):
        probe([task], "senteval", CONFIG)


def test_regularisations_are_those_of_senteval():
    """Powers of ten and of two, as senteval/tools/validation.py lists them at commit 102d319."""
    powers = {"nested": range(-2, 4), "kfold": range(-1, 6), "split": range(-2, 4)}
    assert pytest.approx([10**t for t in range(-5, -1)]) == DECAYS
    assert {layout: tuple(2**t for t in exponents) for layout, exponents in powers.items()} == STRENGTHS
