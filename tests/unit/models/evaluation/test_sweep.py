"""Results of several methods on several sets: differences from each reference, with corrected p-values."""

import numpy as np
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.significance.hierarchical import BootstrapDraws, difference_of, holm
from bsl.models.evaluation.sweep import MEAN, SetDraws, SweepResult, enough_draws, mean_of, smallest_p


@pytest.fixture(scope="module")
def sets():
    """Return two sets with three methods each; the second method has a single seed."""
    generator = np.random.default_rng(7)

    def drawn(level: float, seeds: int) -> BootstrapDraws:
        figures = level + 0.01 * generator.normal(size=seeds)
        return BootstrapDraws(figures, figures + 0.02 * generator.normal(size=(200, seeds)))

    return [SetDraws(name, "spearman", name, (drawn(0.5, 3), drawn(0.55, 1), drawn(0.7, 3))) for name in ("one", "two")]


def rows_of(sets, references=(), seed=0):
    return list(SweepResult(("a", "b", "c"), tuple(sets), seed).rows(references))


def test_rows_cover_every_reference_set_and_method(sets):
    rows = rows_of([*sets, mean_of(sets)], ["a", "c"])
    places = [(row["reference"], row["dataset"], row["label"]) for row in rows]
    assert places == [
        (reference, name, label) for reference in "ac" for name in ("one", "two", MEAN) for label in "abc"
    ]
    own = [row for row in rows if row["label"] == row["reference"]]
    assert {row[name] for row in own for name in ("difference", "difference_low", "difference_high", "p_value")} == {
        None
    }
    assert [row["sd"] is None for row in rows if row["dataset"] == MEAN] == [False, True, False] * 2


def test_differences_and_p_value_corrections_are_per_reference(sets):
    rows = {row["label"]: row for row in rows_of(sets[:1], ["c"], 4)}
    gains = [difference_of(sets[0].systems[2], sets[0].systems[place], seed=4) for place in (0, 1)]
    assert [rows[label]["difference"] for label in "ab"] == [gain.value for gain in gains]
    assert [rows[label]["p_value"] for label in "ab"] == holm([gain.p_value for gain in gains])
    assert rows["a"]["difference"] < 0


def test_reference_defaults_to_first_method_and_must_exist(sets):
    assert {row["reference"] for row in rows_of(sets)} == {"a"}
    with pytest.raises(EvaluationError, match=r"unknown reference d\. Choose from a, b, c"):
        rows_of(sets, ["d"])


@pytest.mark.parametrize("comparisons", [1, 12, 26, 200])
def test_enough_draws_allow_significance_after_correction(comparisons):
    draws = enough_draws(1000, comparisons)
    assert smallest_p(draws, comparisons) < 0.026
    ones = BootstrapDraws(np.ones(1), np.full((draws, 1), 1.0))
    noughts = [BootstrapDraws(np.zeros(1), np.zeros((draws, 1)))] * comparisons
    rows = SweepResult(
        ("a", *map(str, range(comparisons))), (SetDraws("one", "spearman", "one", (ones, *noughts)),)
    ).rows()
    assert {row["p_value"] for row in rows} == {None, smallest_p(draws, comparisons)}
    assert enough_draws(10_000, 3) == 10_000
