"""Accuracies on classes: a classifier, and grouping; no row is judged by itself or by rows of its unit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from bsl.models.evaluation.grouping import centroid_accuracy, neighbour_accuracy
from bsl.models.evaluation.labels import Labelled, class_accuracies, labelled_of
from tests.every import every

ROWS = 200
HALF = np.arange(ROWS) % 2


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def classes(gold):
    names = tuple(map(str, range(int(gold.max()) + 1)))
    return Labelled("classes", tuple(f"text {row}" for row in range(len(gold))), (), gold.astype(float), names)


def test_classifier_and_grouping_accuracies_are_not_averaged():
    """A classifier finds classes along a line; distances, dominated by other dimensions, do not."""
    vectors = normal(ROWS, 8)
    vectors[:, 0] = (HALF - 0.5) * 0.2
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = unit @ unit.T
    np.fill_diagonal(near, -np.inf)
    alone = np.arange(ROWS)
    searched = neighbour_accuracy(vectors, HALF, alone)
    assert np.array_equal(searched, HALF[near.argmax(axis=1)] == HALF)
    found = class_accuracies(vectors, classes(HALF))
    assert np.allclose(found.grouping, (searched + centroid_accuracy(vectors, HALF, alone)) / 2)
    assert set(found.classifier) <= {0.0, 1.0}
    assert found.classifier.mean() > 0.9 > 0.7 > found.grouping.mean()


@pytest.mark.parametrize("of_the_rarer_class", [2, 50])
def test_classifier_learns_from_training_rows_only(of_the_rarer_class):
    """The training rows have their classes exchanged; a class may have fewer rows than there are folds."""
    vectors = normal(ROWS, 4) + 4 * HALF[:, None].astype(np.float32)
    learnt = np.concatenate([np.flatnonzero(HALF == 0)[:50], np.flatnonzero(HALF == 1)[:of_the_rarer_class]])
    exchanged, right = (
        class_accuracies(vectors, classes(HALF), (vectors[learnt], classes(gold)))
        for gold in (1 - HALF[learnt], HALF[learnt])
    )
    assert exchanged.classifier.mean() < 0.1
    assert right.classifier.mean() > 0.9
    assert np.array_equal(exchanged.grouping, class_accuracies(vectors, classes(HALF)).grouping)


def test_class_accuracies_are_equal_for_sparse_and_dense_vectors():
    vectors = np.random.default_rng(0).poisson(0.3, size=(ROWS, 40)).astype(np.float32)
    gold = classes(np.argmax(vectors[:, :3], axis=1))
    dense, sparse = class_accuracies(vectors, gold), class_accuracies(csr_array(vectors), gold)
    assert dense.classifier.mean() > 0.6
    assert np.allclose(dense.classifier, sparse.classifier)
    assert np.allclose(dense.grouping, sparse.grouping)


def test_probe_of_many_rows_and_classes_predicts_as_the_exact_one(monkeypatch):
    gold, found = np.repeat(np.arange(8), 16), []
    vectors = normal(8, 12, seed=5)[gold] + 1.3 * normal(128, 12, seed=6)
    for cells in (0, 1 << 60):
        monkeypatch.setattr("bsl.models.evaluation.labels.MANY_CELLS", cells)
        monkeypatch.setattr("bsl.models.evaluation.labels._RECENT", {})
        found.append(class_accuracies(vectors, classes(gold)).classifier)
    assert 0.5 < found[1].mean() < 0.95
    assert found[0].mean() == pytest.approx(found[1].mean(), abs=0.001)


@every([("document", "writer {}"), ("text_1", "t {}"), ("text_1", "t{1} {0}")])
def test_no_row_is_judged_by_rows_of_its_group_or_with_its_text(column, name):
    """Regression: vectors know only the writer, whose rows have one class: accuracies were 1, not those of chance."""
    writer = np.arange(ROWS) % 40
    gold = np.random.default_rng(3).permutation(np.arange(40) % 2)[writer]
    vectors = normal(40, 64, seed=1)[writer]
    alone = {"text_1": [f"text {row}" for row in range(ROWS)], "label": gold.astype(str)}
    rows = pl.DataFrame({**alone, column: [name.format(number, "." * row) for row, number in enumerate(writer)]})
    leaking, found = (class_accuracies(vectors, labelled_of(some, "classes")) for some in (pl.DataFrame(alone), rows))
    assert leaking.classifier.mean() > 0.95
    assert leaking.grouping.mean() > 0.75
    assert 0.2 < found.classifier.mean() < 0.8
    assert 0.2 < found.grouping.mean() < 0.65


def test_class_accuracies_of_threads_equal_that_of_one_thread(monkeypatch):
    """Regression: threads removed old results from one dictionary at once."""
    monkeypatch.setattr("bsl.models.evaluation.labels._MOST_RECENT", 3)
    gold = classes(np.arange(16) % 2)
    inputs = [normal(16, 2, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda vectors: class_accuracies(vectors, gold), inputs * 2))
    for number, vectors in enumerate(inputs[:4]):
        assert np.array_equal(found[number].classifier, class_accuracies(vectors, gold).classifier)
        assert np.array_equal(found[number].grouping, found[number + len(inputs)].grouping)
