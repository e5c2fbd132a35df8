"""The `fast` protocol equals scikit-learn's LogisticRegression, solved more exactly; bad input is refused."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig
from bsl.models.evaluation.probe.logistic import EXACT, SINGLE, NotConvergedError, fit_logistic
from bsl.models.evaluation.probe.problem import Part, make_problem
from bsl.models.evaluation.probe.search import STRENGTHS, Outcome, probe, probe_rows
from tests.every import every


def rows(n, width, classes):
    random = np.random.default_rng(0)
    y = random.integers(0, classes, n)
    return (random.normal(size=(n, width)) + 0.7 * random.normal(size=(classes, width))[y]).astype(np.float32), y


def words(texts, vocabulary, classes):
    """Draw unit rows of six words whose frequencies depend on the class; the last words are in no row."""
    random = np.random.default_rng(1)
    y = random.integers(0, classes, texts)
    likely = random.dirichlet(np.full(vocabulary - 5, 0.3), classes)
    counts = np.array([random.multinomial(6, likely[label]) for label in y])
    x = np.hstack([counts, np.zeros((texts, 5))])
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


def folds_of(n, count):
    return [np.flatnonzero(np.arange(n) % count != fold) for fold in range(count)]


def fit(x, y, folds, grid, **options):
    x = torch.from_numpy(x) if isinstance(x, np.ndarray) else x
    return fit_logistic(x, torch.from_numpy(y), int(y.max()) + 1, folds, [grid] * len(folds), **options).numpy()


def exact(c, x, y):
    return LogisticRegression(C=c, solver="newton-cholesky", tol=1e-8).fit(x.astype(np.float64), y)


def slope_norm(x, y, c, weights):
    """Return the norm of the gradient of scikit-learn's objective at weights (P, C) of our form, restated in NumPy."""
    scores = x.astype(np.float64) @ weights[:-1] + weights[-1]
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = chance / chance.sum(axis=1, keepdims=True) - np.eye(weights.shape[1])[y]
    free = slice(1, None) if weights.shape[1] == 2 else slice(None)  # the first of two classes has score 0
    return float(np.linalg.norm((c * x.T.astype(np.float64) @ error + weights[:-1])[:, free]))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_logistic_fit_reaches_the_optimum_of_scikit_learn(classes, scale):
    x, y = rows(200, 8, classes)
    x = x * np.float32(scale) + 3
    folds, grid = folds_of(200, 5), (0.25, 8.0)
    found = fit(x, y, folds, grid, tolerance=1e-9)
    for fold, held in enumerate(folds):
        for weights, c in zip(found[fold], grid, strict=True):
            assert slope_norm(x[held], y[held], c, weights) <= 1e-6 * max(1.0, np.linalg.norm(weights))
            theirs = exact(c, x[held], y[held])
            ours = weights[:, 1:] if classes == 2 else weights
            np.testing.assert_allclose(ours[:-1], theirs.coef_.T, rtol=1e-5, atol=1e-7)
            centred = [bias - bias.mean() * (classes > 2) for bias in (ours[-1], theirs.intercept_)]
            np.testing.assert_allclose(*centred, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", [(150, 40), (60, 200)])
def test_sparse_and_dense_features_give_the_same_weights(classes, shape):
    x, y = words(*shape, classes)
    folds, grid, tolerance = folds_of(len(y), 3), (0.5, 32.0), 1e-6
    sparse, dense = (fit(form, y, folds, grid, tolerance=tolerance) for form in (csr_array(x), x))
    # Each is within tolerance · max(1, ‖w‖) of the unique optimum: the penalty's curvature is 1.
    norms = np.maximum(1.0, np.linalg.norm(dense[:, :, :-1], axis=(2, 3)))
    assert (np.linalg.norm((sparse - dense)[:, :, :-1], axis=(2, 3)) <= 2.01 * tolerance * norms).all()
    for fold, held in enumerate(folds):
        for place, c in enumerate(grid):
            assert slope_norm(x[held], y[held], c, sparse[fold, place]) <= 2 * tolerance * norms[fold, place]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_class_without_a_row_in_a_fold_is_never_found_and_others_are_as_without_it(form):
    """Regression: the bias had no optimum, so 40 rows took ten seconds, or did not converge."""
    x, y = rows(120, 6, 4)
    folds, grid = [np.flatnonzero(np.isin(y, known)) for known in ([0, 1, 2, 3], [1, 3], [0, 2, 3], [2])], (0.25, 8.0)
    found = fit(form(x), y, folds, grid, tolerance=1e-7)
    for fold, of in enumerate(folds):
        known = np.unique(y[of])
        for weights, c in zip(found[fold], grid, strict=True):
            chance = softmax(x @ weights[:-1] + weights[-1], axis=1)
            theirs = exact(c, x[of], y[of]).predict_proba(x) if len(known) > 1 else np.ones((len(x), 1))
            np.testing.assert_allclose(chance[:, known], theirs, atol=1e-5)
            assert chance[:, np.setdiff1d(y, known)].sum() == 0


def test_progress_never_goes_back_if_folds_know_different_classes():
    """Regression: it began again for each set of classes that folds know."""
    x, y = rows(120, 6, 4)
    folds = [np.flatnonzero(np.isin(y, known)) for known in ([0, 1, 2, 3], [1, 3], [0, 2, 3])]
    seen = []
    fit_logistic(
        torch.from_numpy(x),
        torch.from_numpy(y),
        4,
        folds,
        [(0.25, 8.0)] * 3,
        tolerance=1e-3,
        on_progress=lambda done, total, _: seen.append((done, total)),
    )
    assert seen == [(done, 6) for done in range(1, 7)]


def test_nested_search_selects_and_predicts_like_scikit_learn():
    x, y = rows(180, 6, 2)
    cutter = StratifiedKFold(n_splits=3, shuffle=True, random_state=1111)
    task = make_problem("mr", "nested", {"all": Part(x, y, np.arange(180))}, ("a", "b"), folds=3, seed=1111)
    outcomes = probe([task], "fast", ProbeConfig(folds=3, tolerance=1e-9))[0]
    for outcome, (train, test) in zip(outcomes, cutter.split(x, y), strict=True):
        fits = [(train[a], train[b]) for a, b in cutter.split(x[train], y[train])]
        means = tuple(
            round(100 * np.mean([exact(c, x[a], y[a]).score(x[b], y[b]) for a, b in fits]), 2)
            for c in STRENGTHS["nested"]
        )
        assert outcome.dev == means
        assert outcome.penalty == STRENGTHS["nested"][int(np.argmax(means))]
        predicted = exact(outcome.penalty, x[train], y[train]).predict(x[test])
        np.testing.assert_array_equal(outcome.predicted, predicted)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_many_classes_solved_roughly_in_float32_score_as_converged_solutions(scale):
    """Own labels are scored so: 40 classes, unit vectors and vectors of an encoder that does not normalise."""
    x, y = rows(900, 32, 40)
    x *= np.float32(scale) / np.linalg.norm(x, axis=1, keepdims=True)
    spans = {"train": np.s_[:500], "dev": np.s_[500:700], "test": np.s_[700:]}
    parts = {name: Part(x[span], y[span], np.arange(len(y[span]))) for name, span in spans.items()}
    task = make_problem("own", "split", parts, tuple(map(str, range(40))), folds=3, seed=1)
    ((found,),) = probe([task], "fast", ProbeConfig(tolerance=1e-2), arithmetic=SINGLE)
    train = x[:500].astype(np.float64), y[:500]
    solved = [LogisticRegression(C=c, tol=1e-6, max_iter=10_000).fit(*train) for c in STRENGTHS["split"]]
    dev = [100 * model.score(x[500:700], y[500:700]) for model in solved]
    assert found.dev == pytest.approx(dev, abs=0.1)
    test = solved[int(np.argmax(dev))].predict(x[700:])
    assert np.mean(found.predicted != test) <= 0.001


def test_what_does_not_converge_in_float32_is_solved_in_float64():
    x, y = rows(300, 8, 3)
    with pytest.raises(NotConvergedError, match=r"not converged after 20 iterations .*raise tolerance"):
        fit(x, y, [np.arange(300)], (1.0,), tolerance=1e-11, arithmetic=SINGLE._replace(most=20))
    parts = {name: Part(x, y, np.arange(300)) for name in ("train", "dev", "test")}
    task = make_problem("own", "split", parts, ("a", "b", "c"), folds=3, seed=1)
    beyond = ProbeConfig(tolerance=1e-11)
    single, exactly = (probe([task], "fast", beyond, arithmetic=one)[0][0] for one in (SINGLE, EXACT))
    assert single.dev == exactly.dev
    assert single.predicted.tolist() == exactly.predicted.tolist()


def test_solver_converges_on_unbalanced_classes_and_feature_scales():
    """Like TREC on BERT-flow latents: with the mean curvature of the classes, a thousand steps were too few."""
    random, widths = np.random.default_rng(0), np.geomspace(30, 0.1, 128)
    x = (random.standard_t(4, (1500, 128)) * widths).astype(np.float32)
    scores_NK = 0.9 * x @ (random.standard_normal((128, 6)) / widths[:, None]) + np.array([0, 0, 0, 0, 0, -6.0])
    y = (scores_NK + 1.5 * random.gumbel(size=(1500, 6))).argmax(axis=1)
    fold = np.delete(np.arange(1500), np.s_[::10])
    found = fit(x, y, [fold], (1024.0,))[0, 0]
    assert slope_norm(x[fold], y[fold], 1024.0, found) <= 2e-4 * np.linalg.norm(found)


def test_accuracy_interval_matches_the_binomial_approximation():
    x, y = rows(100, 4, 2)
    parts = {name: Part(x, y, np.arange(100)) for name in ("train", "test")}
    task = make_problem("mrpc", "kfold", parts, ("0", "1"), folds=3, seed=1111)
    predicted = np.where(np.arange(100) < 80, y, 1 - y)
    config = BootstrapConfig(resamples=20_000)
    accuracy, f1 = probe_rows(task, [Outcome((), 1.0, predicted, predicted == y)], "fast", config, f1=True)
    assert accuracy.value == 0.8
    # The normal approximation of the binomial, within half a row.
    assert (accuracy.ci_low, accuracy.ci_high) == pytest.approx((0.8 - 1.96 * 0.04, 0.8 + 1.96 * 0.04), abs=0.006)
    both, errors = int(((y == 1) & (predicted == 1)).sum()), 20
    assert f1.value == round(2 * both / (2 * both + errors), 4)
    assert f1.ci_low < f1.value < f1.ci_high
    assert (accuracy.metric, f1.metric, accuracy.split, accuracy.n) == ("accuracy", "f1", "test", 100)


X, Y = rows(30, 4, 2)
UNREAD = np.where(np.arange(120).reshape(30, 4) == 17 * 4 + 2, np.nan, X)


@every(
    [
        (UNREAD, Y, "mr all: the embedding of row 17 is not finite"),
        (X, Y[:-1], r"mr all: features of shape \(30, 4\) and 29 labels"),
        (X[:0], Y[:0], "mr all: no rows"),
        (X, np.zeros(30, int), "mr: class 'b' has 0 of 30 rows"),
        (X, (np.arange(30) == 5).astype(int), "mr: class 'b' has 1 of 30 rows, the first in row 5, expected at lea"),
        (X, np.where(np.arange(30) == 4, 2, Y), "mr all: row 4 has class 2, expected 0 to 1"),
    ]
)
def test_invalid_probe_rows_error_names_task_and_cause(x, y, words):
    with pytest.raises(EvaluationError, match=words):
        make_problem("mr", "nested", {"all": Part(x, y, np.arange(len(y)))}, ("a", "b"), folds=3, seed=1111)
