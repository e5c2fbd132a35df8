"""Comparison of methods on sets by bootstrap draws: rows, corrections, the mean of groups, and the best system."""

import numpy as np
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.significance.hierarchical import BootstrapDraws, difference_of, holm
from bsl.models.evaluation.significance.paired import Difference
from bsl.models.evaluation.sweep import MEAN, SetDraws, SweepResult, enough_draws, mean_of, outcome_draws, smallest_p


def flat(*figures):
    return tuple(BootstrapDraws(np.array([figure]), np.full((2000, 1), figure)) for figure in figures)


def drawn(*shifts):
    """Return draws on 400 questions whose difficulty all methods share."""
    generator = np.random.default_rng(99)
    hard = generator.random(400)
    outcomes = [hard + shift + generator.normal(0, 0.05, (1, 400)) for shift in shifts]
    return outcome_draws(outcomes, np.arange(400), resamples=2000)


@pytest.fixture(scope="module")
def sets():
    """Return two sets with three methods each; the second method has a single seed."""
    generator = np.random.default_rng(7)

    def draws(level, seeds):
        figures = level + 0.01 * generator.normal(size=seeds)
        return BootstrapDraws(figures, figures + 0.02 * generator.normal(size=(200, seeds)))

    return [SetDraws(name, "spearman", name, (draws(0.5, 3), draws(0.55, 1), draws(0.7, 3))) for name in ("one", "two")]


def rows_of(sets, references=(), seed=0):
    return list(SweepResult(("a", "b", "c"), tuple(sets), seed).rows(references))


def test_rows_cover_every_reference_set_and_method(sets):
    rows = rows_of([*sets, mean_of(sets)], ["a", "c"])
    places = [(row["reference"], row["dataset"], row["label"]) for row in rows]
    assert places == [
        (reference, name, label) for reference in "ac" for name in ("one", "two", MEAN) for label in "abc"
    ]
    own = [row for row in rows if row["label"] == row["reference"]]
    assert {row[name] for row in own for name in ("difference", "difference_low", "p_value", "verdict")} == {None}
    assert [row["sd"] is None for row in rows if row["dataset"] == MEAN] == [False, True, False] * 2
    assert {row["reference"] for row in rows_of(sets)} == {"a"}
    with pytest.raises(EvaluationError, match=r"unknown reference d\. Choose from a, b, c"):
        rows_of(sets, ["d"])


def test_differences_and_p_value_corrections_are_per_reference(sets):
    rows = {row["label"]: row for row in rows_of(sets[:1], ["c"], 4)}
    gains = [difference_of(sets[0].systems[2], sets[0].systems[place], seed=4) for place in (0, 1)]
    assert [rows[label]["difference"] for label in "ab"] == [gain.value for gain in gains]
    assert [rows[label]["p_value"] for label in "ab"] == holm([gain.p_value for gain in gains])
    assert rows["a"]["difference"] < 0


@pytest.mark.parametrize("comparisons", [1, 12, 200])
def test_enough_draws_allow_significance_after_correction(comparisons):
    draws = enough_draws(1000, comparisons)
    assert smallest_p(draws, comparisons) < 0.026
    ones = BootstrapDraws(np.ones(1), np.full((draws, 1), 1.0))
    noughts = [BootstrapDraws(np.zeros(1), np.zeros((draws, 1)))] * comparisons
    one_set = SetDraws("one", "spearman", "one", (ones, *noughts))
    rows = SweepResult(("a", *map(str, range(comparisons))), (one_set,)).rows()
    assert {row["p_value"] for row in rows} == {None, smallest_p(draws, comparisons)}
    assert enough_draws(10_000, 3) == 10_000


def weighed(one, other, size=1):
    """Return the means of two documents drawn 0 to 11 times each; the first has `size` times as many questions."""
    times = [(size * a, b) for a in range(12) for b in range(12) if a + b]
    return {round((a * one + b * other) / (a + b), 9) for a, b in times}


@pytest.mark.parametrize(
    ("values", "documents", "expected"),
    [([0.0, 1, 2, 3, 4, 5], [3, 3, 3, 9, 9, 9], weighed(1.0, 4.0)), ([0.0, 0, 0, 1], [0, 0, 0, 1], weighed(0, 1, 3))],
)
def test_methods_share_draws_of_whole_documents_weighted_by_their_questions(values, documents, expected):
    one = np.array([values])
    first, second = outcome_draws([one, one + 10], np.array(documents))
    assert first.figures.tolist() == [one.mean()]
    at_all = np.isfinite(first.draws)
    assert {*np.round(first.draws[at_all], 9)} <= expected
    np.testing.assert_allclose(second.draws[at_all] - first.draws[at_all], 10)


def test_mean_weights_groups_equally_and_ignores_ungrouped_sets():
    means, groups = flat(0.2, 0.4, 0.9, 0.0), ("text", "text", "labels", "")
    sets = [SetDraws("some", "MRR", group, (draws,)) for group, draws in zip(groups, means, strict=True)]
    (found,) = mean_of(sets).systems
    assert found.figures[0] == pytest.approx((0.3 + 0.9) / 2)
    np.testing.assert_allclose(found.draws, 0.6)


def test_row_verdicts_are_above_below_or_no_after_correction():
    names = ["start", "same", "better", "worse"]
    crop = SetDraws("crop", "MRR", "text", drawn(0, 0.0001, 0.05, -0.05))
    rows = list(SweepResult(tuple(names), (mean_of([crop]), crop)).rows())
    own = {row["label"]: row for row in rows if row["dataset"] == MEAN}
    assert [own[name]["verdict"] for name in names] == [None, "no", "above", "below"]
    assert own["better"]["mean"] - own["start"]["mean"] == pytest.approx(own["better"]["difference"])


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [(0.1, 0.2, 0.01, "above"), (0.1, 0.2, 0.06, "no"), (-0.2, -0.1, 0.01, "below"), (-0.1, 0.2, 0.01, "no")],
)
def test_verdict_requires_both_interval_and_p_value(low, high, p, word):
    assert Difference(0.0, low, high, p).verdict == word


def chosen(labels, systems, **checks):
    """Choose on one set; `checks` are systems' draws on the sets where none may lose more than half a point."""
    own = [SetDraws(name, "spearman", "", draws) for name, draws in checks.items()]
    return SweepResult(tuple(labels), (SetDraws("text", "MRR", "text", systems), *own)).choice("text", checks, 0.005)


def test_forgetting_depends_on_the_loss_not_on_its_significance():
    names = ["start", "sure", "unsure", "little"]
    found = chosen(names, flat(0, 0, 0, -0.9), stsb=flat(0.5, 0.48, 0.494, 0.496), sts12=flat(0.5, 0.47, 0.5, 0.5))
    assert found.forgets == {"sure": pytest.approx(-0.03), "unsure": pytest.approx(-0.006)}


UNSURE = BootstrapDraws(np.array([0.9]), np.random.default_rng(0).normal(0.9, 1, (2000, 1)))


@pytest.mark.parametrize(
    ("names", "systems", "check", "best"),
    [
        # A significant gain before a higher uncertain score; what forgets is left out.
        (["start", "sure", "forgets", "unsure"], (*flat(0.4, 0.45, 0.5), UNSURE), flat(0.5, 0.5, 0.4, 0.5), "sure"),
        (["start", "forgets", "unsure"], (*flat(0.4, 0.5), UNSURE), flat(0.5, 0.4, 0.5), "unsure"),
        (["start", "forgets"], flat(0.4, 0.5), flat(0.5, 0.4), "start"),
        (["start", "near", "best", "barred"], drawn(0, 0.095, 0.1, 0.3), flat(0.5, 0.5, 0.5, 0.4), "best"),
    ],
)
def test_best_is_the_highest_significant_system_that_does_not_forget(names, systems, check, best):
    assert chosen(names, systems, stsb=check).best == best
