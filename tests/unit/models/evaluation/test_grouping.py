"""Grouping accuracy: centroids of examples, and draws of units that are scored anew."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bsl.models.evaluation import grouping
from bsl.models.evaluation.grouping import centroid_accuracy, grouping_draws, neighbour_accuracy
from bsl.models.evaluation.labels import Labelled, class_accuracies
from bsl.models.evaluation.significance.bootstrap import unit_weights

ROWS = 200
HALF = np.arange(ROWS) % 2


def test_row_that_is_an_example_in_all_draws_has_the_accuracy_of_its_neighbour(monkeypatch):
    gold = np.array([0] * 20 + [1])
    found = centroid_accuracy(np.eye(2, dtype=np.float32)[gold], gold, np.arange(21))
    assert found.tolist()[:20] == [1.0] * 20
    assert np.isnan(found[20])
    rare = np.where(np.arange(ROWS) < 3, 2, HALF)  # one example of three, fewer than five
    assert centroid_accuracy(np.eye(3, dtype=np.float32)[rare], rare, np.arange(ROWS)).mean() == 1
    vectors, texts = np.eye(2, dtype=np.float32)[HALF], tuple(f"text {row}" for row in range(ROWS))
    monkeypatch.setattr(grouping, "DRAWS", 1)
    assert np.isnan(centroid_accuracy(vectors, HALF, np.arange(ROWS))).sum() == 10
    found = class_accuracies(vectors, Labelled("classes", texts, (), HALF.astype(float), ("0", "1")))
    assert found.grouping.tolist() == [1.0] * ROWS


def drawn_set(generator, rows, classes=3, width=8):
    """Return vectors of overlapping classes and their classes, out of one population."""
    gold = np.arange(rows) % classes
    means = 0.6 * np.random.default_rng(5).normal(size=(classes, width))
    return means[gold] + generator.normal(size=(rows, width)), gold


def drawn_slowly(vectors, gold, unit, weights):
    """Return the grouping accuracy of drawn units, row by row."""
    drawn, near, right = np.flatnonzero(weights), [], {row: [] for row in np.flatnonzero(weights)}
    for row in drawn:
        others = [other for other in drawn if unit[other] != unit[row]]
        near.append(gold[max(others, key=lambda other: vectors[row] @ vectors[other])] == gold[row])
    generator = np.random.default_rng(0)
    for _ in range(grouping.DRAWS):
        order, examples = generator.permutation(len(gold)), {}
        for name in sorted(set(gold[drawn])):
            of_class = [row for row in order if weights[row] and gold[row] == name]
            examples[name] = of_class[: 5 if len(of_class) >= 5 else max(1, len(of_class) // 2)]
        used = {unit[row] for rows in examples.values() for row in rows}
        centroids = {name: vectors[rows].sum(axis=0) for name, rows in examples.items()}
        centroids = {name: centroid / np.linalg.norm(centroid) for name, centroid in centroids.items()}
        for row in drawn:
            if unit[row] not in used:
                right[row].append(max(centroids, key=lambda name: vectors[row] @ centroids[name]) == gold[row])
    central = [np.mean(right[row]) for row in drawn]
    return (np.average(near, weights=weights[drawn]) + np.average(central, weights=weights[drawn])) / 2


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("of_a_unit", [1, 2])
def test_every_draw_of_units_is_scored_anew(form, of_a_unit):
    vectors, gold = drawn_set(np.random.default_rng(0), 90)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    unit = np.arange(90) // of_a_unit
    found = grouping_draws(form(vectors), gold, unit, resamples=12, seed=3)
    expected = [drawn_slowly(vectors, gold, unit, weights) for weights in unit_weights(unit, resamples=12, seed=3)]
    np.testing.assert_allclose(found - found.mean(), expected - np.mean(expected), atol=1e-9)
    both = [of(vectors, gold, unit) for of in (neighbour_accuracy, centroid_accuracy)]
    assert found.mean() == pytest.approx(np.mean(both))


@pytest.mark.filterwarnings("error")
def test_draws_of_few_units_count_by_their_neighbours():
    """Regression: of two writers each is an example in every draw, so all draws were NaN, and a comparison failed."""
    vectors, gold = drawn_set(np.random.default_rng(0), 60)
    for writers in (2, 3, 5):
        unit = np.arange(60) % writers
        drawn = [len(set(unit[weights > 0])) for weights in unit_weights(unit, resamples=40, seed=0)]
        found = grouping_draws(vectors, gold, unit, resamples=40, seed=0)
        assert np.isfinite(found).tolist() == [count > 1 for count in drawn]
    assert found[np.isfinite(found)].std() > 0


def test_draws_are_accuracies():
    """Regression: the mean of draws was moved to the accuracy of all rows, and so some were above 1."""
    vectors, gold = drawn_set(np.random.default_rng(0), 60)
    vectors += 4 * np.eye(8)[gold]
    found = grouping_draws(vectors, gold, np.arange(60), resamples=100, seed=0)
    assert found.max() == 1
    assert found.min() < 1


def test_draws_vary_as_the_accuracy_of_samples_does():
    """Regression: draws of rows' outcomes vary less, so that intervals were too narrow and differences significant."""
    generator, means, spreads, too_small = np.random.default_rng(1), [], [], []
    for _ in range(80):
        vectors, gold = drawn_set(generator, 60)
        alone = np.arange(60)
        outcomes = np.mean([of(vectors, gold, alone) for of in (neighbour_accuracy, centroid_accuracy)], axis=0)
        means.append(outcomes.mean())
        spreads.append(grouping_draws(vectors, gold, alone, resamples=60, seed=0).std())
        too_small.append(outcomes.std() / 60**0.5)
    true = np.std(means, ddof=1)
    assert np.mean(too_small) < 0.85 * true
    assert 0.9 * true < np.mean(spreads) < 1.4 * true


def test_draws_of_some_rows_vary_as_those_of_all(monkeypatch):
    vectors, gold = drawn_set(np.random.default_rng(2), 300)
    every = grouping_draws(vectors, gold, np.arange(300), resamples=150, seed=0)
    monkeypatch.setattr(grouping, "_SCORED", 60)
    some = grouping_draws(vectors, gold, np.arange(300), resamples=150, seed=0)
    assert np.corrcoef(every, some)[0, 1] > 0.9
    assert 0.9 < some.std() / every.std() < 1.2
