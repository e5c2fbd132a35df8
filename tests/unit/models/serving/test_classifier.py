"""The linear classifier equals scikit-learn's, is calibrated on held-out rows, and survives a file."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.linear_model import LogisticRegression

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.labels import Labelled, class_accuracies
from bsl.models.evaluation.probe.problem import senteval_order
from bsl.models.serving.classifier import WEIGHTS, LinearClassifier, fit_classifier, temperature
from bsl.storage.filesystem.model_folder import CLASSIFIER_SETTINGS

NAMES = ("a", "b", "c", "d")


def rows(count, classes=4, spread=1.0):
    """Return unit vectors around a mean of each class, and the classes."""
    generator = np.random.default_rng(0)
    means_CD = generator.normal(size=(classes, 12))
    gold_N = np.arange(count) % classes
    vectors_ND = means_CD[gold_N] + spread * generator.normal(size=(count, 12))
    return (vectors_ND / np.linalg.norm(vectors_ND, axis=1, keepdims=True)).astype(np.float32), gold_N


@pytest.mark.parametrize("classes", [2, 4])
def test_classifier_is_the_logistic_regression_of_scikit_learn(classes):
    vectors_ND, gold_N = rows(200, classes)
    found = fit_classifier(vectors_ND[:100], gold_N[:100], NAMES[:classes])
    peer = LogisticRegression(C=found.settings.strength, max_iter=2000).fit(vectors_ND[:100], gold_N[:100])
    scores_NC = found.scores(vectors_ND[100:])
    assert (scores_NC.argmax(axis=1) == peer.predict(vectors_ND[100:])).all()
    hot = found.settings.model_copy(update={"temperature": 1.0})
    chance_NC = LinearClassifier(hot, found.weights, found.bias).probabilities(vectors_ND[100:])
    assert chance_NC == pytest.approx(peer.predict_proba(vectors_ND[100:]), abs=0.01)


def test_temperature_makes_probabilities_as_sure_as_they_are_right():
    generator = np.random.default_rng(1)
    sharp_NC = generator.normal(size=(4000, 3))
    chance_NC = np.exp(sharp_NC) / np.exp(sharp_NC).sum(axis=1, keepdims=True)
    gold_N = np.array([generator.choice(3, p=chance_C) for chance_C in chance_NC])
    assert temperature(5 * sharp_NC, gold_N) == pytest.approx(5, rel=0.1)
    assert temperature(sharp_NC / 5, gold_N) == pytest.approx(0.2, rel=0.1)


def test_probabilities_without_errors_are_below_1():
    vectors_ND, gold_N = rows(40, 2, spread=0.01)
    chance_NC = fit_classifier(vectors_ND, gold_N, NAMES[:2]).probabilities(vectors_ND)
    assert (chance_NC.argmax(axis=1) == gold_N).all()
    assert 0.9 < chance_NC.max() < 0.999


def test_temperature_is_fitted_on_rows_that_the_encoder_has_not_seen():
    """Vectors of training rows are closer to their class, so all rows together would be too sure."""
    (near_ND, near_N), (far_ND, far_N) = rows(200, spread=0.1), rows(200, spread=2.0)
    vectors_ND, gold_N = np.concatenate([near_ND, far_ND]), np.concatenate([near_N, far_N])
    is_new_N = np.arange(400) >= 200
    sure, honest = (
        fit_classifier(vectors_ND, gold_N, NAMES, is_new_N=new_N).settings.temperature for new_N in (None, is_new_N)
    )
    assert honest > sure


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_accuracy_in_a_verdict_is_that_of_the_classifier_of_the_same_rows(spread):
    vectors_ND, gold_N = rows(240, spread=spread)
    unit_N = np.arange(240) // 3  # three rows of one writer
    texts = tuple(f"{'word ' * (row % 7)}{row}" for row in range(240))
    labelled = Labelled("classes", texts, (), gold_N.astype(np.float64), NAMES, unit_N)
    order = senteval_order([list(texts[:160])], gold_N[:160])
    learnt, asked = (
        Labelled("classes", texts[part], (), labelled.gold[part], NAMES, unit_N[part])
        for part in (slice(160), slice(160, None))
    )
    found = class_accuracies(vectors_ND[160:], asked, (vectors_ND[:160], learnt))
    classifier = fit_classifier(vectors_ND[:160][order], gold_N[:160][order], NAMES, unit_N=unit_N[:160][order])
    assert (classifier.scores(vectors_ND[160:]).argmax(axis=1) == found.predicted).all()
    assert 0.3 < found.classifier.mean() < 1


def test_probabilities_are_calibrated_on_folds_that_divide_no_unit():
    """The vectors of a writer are alike, and predict the classes of the writer's other rows only."""
    writer_N = np.arange(200) % 50
    gold_N = np.random.default_rng(3).permutation(np.arange(50) % 2)[writer_N]
    vectors_ND = np.random.default_rng(1).normal(size=(50, 64)).astype(np.float32)[writer_N]
    sure, honest = (
        fit_classifier(vectors_ND, gold_N, NAMES[:2], unit_N=unit_N).settings.temperature for unit_N in (None, writer_N)
    )
    assert honest > 3 * sure


@pytest.mark.parametrize("new", [None, "one writer's"])
def test_class_of_one_writer_does_not_decide_how_sure_the_probabilities_are(new):
    """Regression: the fold of this writer knows nothing of the class, and its errors made all classes as probable."""
    vectors_ND, gold_N = rows(200, spread=0.5)
    unit_N = np.where(gold_N == 0, 0, 1 + np.arange(200) // 5)
    is_new_N = None if new is None else gold_N == 0  # none of them is in a fold that knows the class
    alone, together = (
        fit_classifier(vectors_ND, gold_N, NAMES, unit_N=units, is_new_N=is_new_N).settings.temperature
        for units in (None, unit_N)
    )
    assert 0.3 * alone < together < 3 * alone < 15


def test_saved_classifier_gives_equal_probabilities(tmp_path):
    vectors_ND, gold_N = rows(80)
    found = fit_classifier(vectors_ND, gold_N, NAMES, text_column="body")
    found.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {CLASSIFIER_SETTINGS, WEIGHTS}
    again = LinearClassifier.load(tmp_path)
    assert again.settings == found.settings
    assert (again.probabilities(vectors_ND) == found.probabilities(vectors_ND)).all()


def test_damaged_classifier_and_other_vectors_are_refused(tmp_path):
    vectors_ND, gold_N = rows(80)
    found = fit_classifier(vectors_ND, gold_N, NAMES)
    with pytest.raises(EvaluationError, match=r"vectors have 5 dimensions \(expected 12\)"):
        found.probabilities(vectors_ND[:, :5])
    with pytest.raises(EvaluationError, match="not a classifier"):
        LinearClassifier.load(tmp_path)
    found.save(tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    save_file({**tensors, "weights": tensors["weights"][:, :2].copy()}, tmp_path / WEIGHTS)
    with pytest.raises(EvaluationError, match=r"weights of shape \(12, 2\) \(expected \(12, 4\)"):
        LinearClassifier.load(tmp_path)


@pytest.mark.parametrize("classes", [[0] * 10, [0] * 9 + [1]])
def test_class_of_a_single_row_is_refused(classes):
    vectors_ND, _ = rows(10)
    with pytest.raises(EvaluationError, match="expected at least two classes with 2 rows each"):
        fit_classifier(vectors_ND, np.array(classes), NAMES[: max(classes) + 1])
