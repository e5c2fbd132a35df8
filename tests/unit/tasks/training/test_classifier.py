"""The classifier stage tests a classifier of the training labels on the test labels, and publishes one of all."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.uses import ACCURACY, LABELS
from bsl.models.serving.classifier import LinearClassifier
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.comparison import paired_draws
from bsl.tasks.training.classifier import class_table, train_classifier
from tests.classified import classified


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return classified(tmp_path_factory.mktemp("classified"))


def test_test_accuracy_is_that_of_scikit_learn_on_the_same_rows(made):
    store, rows = made.site.open_store(), rows_of(made.held_out)["labels"]
    figures = store.manifest(made.classifier).figures
    vectors = open_vectors(store, made.vectors)
    parts = {part: rows.filter(part=part) for part in ("teach", "judge")}
    x = {part: vectors.features(table["text_1"], part) for part, table in parts.items()}
    peer = LogisticRegression(C=float(str(figures["strength"])), max_iter=2000).fit(x["teach"], parts["teach"]["label"])
    assert figures["accuracy"] == pytest.approx(peer.score(x["judge"], parts["judge"]["label"]), abs=0.04)
    assert figures["original_accuracy"] == figures["accuracy"]
    sets: dict[str, EvaluationSet] = {"own:tickets": made.held_out}
    draws = paired_draws(store, (made.vectors, made.vectors), sets, BootstrapConfig(resamples=100))
    (verdict,) = (found.systems for found in draws if (found.group, found.metric) == (LABELS, ACCURACY))
    assert figures["accuracy"] == pytest.approx(float(verdict[1].figures[0]), abs=1e-12)
    assert (figures["test_rows"], figures["training_rows"]) == (len(x["judge"]), len(x["teach"]))
    assert figures["rows"] == rows.height


def test_published_classifier_is_trained_on_all_rows(made):
    store, rows = made.site.open_store(), rows_of(made.held_out)["labels"]
    classifier = LinearClassifier.load(store.fetch(made.classifier))
    assert classifier.settings.classes == ("account", "delivery", "refund")
    assert classifier.settings.text_column == "body"
    x = np.asarray(open_vectors(store, made.vectors).features(rows["text_1"], "all"))
    peer = LogisticRegression(C=classifier.settings.strength, max_iter=2000).fit(x, rows["label"])
    found = [classifier.settings.classes[number] for number in classifier.scores(x).argmax(axis=1)]
    assert found == peer.predict(x).tolist()


def _rows(confusion):
    return [list(row.cells) for row in class_table(confusion).rows]


def test_precision_and_recall_of_classes_are_those_of_scikit_learn(made):
    confusion = made.site.open_store().scan(made.classifier).collect()
    gold, predicted = (confusion[name].repeat_by(confusion["rows"]).explode() for name in ("label", "predicted"))
    names = sorted({*gold})
    *scores, counts = precision_recall_fscore_support(gold, predicted, labels=names, zero_division=0)
    expected = [[f"{100 * value:.1f}" for value in values] for values in zip(*scores, strict=True)]
    assert _rows(confusion) == [[names[n], str(counts[n]), *expected[n]] for n in range(len(names))]
    never = pl.DataFrame({"label": ["a", "b"], "predicted": ["a", "a"], "rows": [3, 1]})
    assert [row[2:4] for row in _rows(never)] == [["75.0", "100.0"], ["–", "0.0"]]


def test_labels_without_a_training_part_are_cross_validated(made):
    only_test = made.held_out.model_copy(update={"use": "judge"})
    ref = train_classifier(made.site, (made.vectors, made.vectors), made.exported, only_test)
    figures = made.site.open_store().manifest(ref).figures
    assert (figures["training_rows"], figures["test_rows"]) == (0, 120)
    assert 0.7 < float(str(figures["accuracy"])) < 0.99  # one row in twenty is mislabelled
