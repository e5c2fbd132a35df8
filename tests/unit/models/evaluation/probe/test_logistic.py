"""The `fast` protocol equals scikit-learn's LogisticRegression, solved more exactly; bad input is refused."""

import os

import numpy as np
import polars as pl
import pytest
import torch
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from bsl.models.encoder.tfidf import TfIdf
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import BootstrapConfig, ProbeConfig
from bsl.models.evaluation.probe.logistic import EXACT, SINGLE, NotConvergedError, fit_logistic
from bsl.models.evaluation.probe.problem import Part, make_problem
from bsl.models.evaluation.probe.search import STRENGTHS, Outcome, probe, probe_rows
from tests.every import every

MIRROR = os.environ.get("BSL_DATA_MIRROR")
CONFIG = ProbeConfig(folds=3, tolerance=1e-9)


def rows(n: int, width: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    return (random.normal(size=(n, width)) + 0.7 * random.normal(size=(classes, width))[y]).astype(np.float32), y


def gradient(x: np.ndarray, y: np.ndarray, c: float, weights: np.ndarray, classes: int) -> np.ndarray:
    """Return the gradient of scikit-learn's objective at weights (P, C) of our form, restated in NumPy."""
    scores = x.astype(np.float64) @ weights[:-1] + weights[-1]
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = chance / chance.sum(axis=1, keepdims=True) - np.eye(classes)[y]
    free = slice(1, None) if classes == 2 else slice(None)  # the first of two classes has score 0
    inner = c * x.T.astype(np.float64) @ error + weights[:-1]
    return np.vstack([inner, c * error.sum(axis=0)])[:, free]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_logistic_fit_reaches_the_optimum_of_scikit_learn(classes, scale):
    x, y = rows(200, 8, classes)
    x = x * np.float32(scale) + 3
    folds = [np.arange(200)[np.arange(200) % 5 != fold] for fold in range(5)]
    grid = (0.25, 8.0)
    found = fit_logistic(torch.from_numpy(x), torch.from_numpy(y), classes, folds, [grid] * 5, tolerance=1e-8).numpy()
    for fold, held in enumerate(folds):
        for place, c in enumerate(grid):
            weights = found[fold, place]
            slope = gradient(x[held], y[held], c, weights, classes)
            assert np.linalg.norm(slope[:-1]) <= 1e-6 * max(1.0, np.linalg.norm(weights))
            theirs = LogisticRegression(C=c, tol=1e-6, max_iter=10_000).fit(x[held].astype(np.float64), y[held])
            lowest, reached = (objective(x[held], y[held], c, one) for one in (weights, ours_of(theirs, classes)))
            assert lowest <= reached * (1 + 1e-12)
            assert reached <= lowest * (1 + 1e-5)


def ours_of(model: LogisticRegression, classes: int) -> np.ndarray:
    weights = np.vstack([model.coef_.T, model.intercept_])
    return np.hstack([np.zeros_like(weights), weights]) if classes == 2 else weights


def objective(x: np.ndarray, y: np.ndarray, c: float, weights: np.ndarray) -> float:
    losses = logsumexp(scores(x, weights), axis=1) - scores(x, weights)[np.arange(len(y)), y]
    return c * losses.sum() + 0.5 * (weights[:-1] ** 2).sum()


def scores(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) @ weights[:-1] + weights[-1]


def test_weights_equal_newton_cholesky_to_seven_digits():
    x, y = rows(300, 6, 2)
    found = fit_logistic(
        torch.from_numpy(x), torch.from_numpy(y), 2, [np.arange(300)], [(0.5, 4.0)], tolerance=1e-11
    ).numpy()
    for place, c in enumerate((0.5, 4.0)):
        theirs = LogisticRegression(C=c, solver="newton-cholesky", tol=1e-8).fit(x.astype(np.float64), y)
        np.testing.assert_allclose(found[0, place, :-1, 1], theirs.coef_[0], rtol=1e-7)
        np.testing.assert_allclose(found[0, place, -1, 1], theirs.intercept_[0], rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", [(150, 40), (60, 200)])
def test_sparse_and_dense_features_give_the_same_weights(classes, shape):
    x, y = words(*shape, classes)
    folds = [np.arange(len(y))[np.arange(len(y)) % 3 != fold] for fold in range(3)]
    grid, tolerance = (0.5, 32.0), 1e-6
    sparse, dense = (
        fit_logistic(form, torch.from_numpy(y), classes, folds, [grid] * 3, tolerance=tolerance)
        for form in (csr_array(x), torch.from_numpy(x))
    )
    norms = dense[:, :, :-1].flatten(2).norm(dim=2)
    # Each is within tolerance · max(1, ‖w‖) of the unique optimum: the penalty's curvature is 1.
    bound = 2.01 * tolerance * norms.clamp_min(1.0)
    assert ((sparse - dense)[:, :, :-1].flatten(2).norm(dim=2) <= bound).all()
    for fold, held in enumerate(folds):
        for place, c in enumerate(grid):
            slope = gradient(x[held], y[held], c, sparse[fold, place].numpy(), classes)
            assert np.linalg.norm(slope[:-1]) <= 2 * tolerance * max(1.0, float(norms[fold, place]))


@pytest.mark.skipif(MIRROR is None, reason="BSL_DATA_MIRROR names no mirror")
def test_sparse_and_dense_trec_tfidf_give_equal_weights():
    rows = pl.read_parquet(f"{MIRROR}/trec/train.parquet").head(400)
    y = rows["coarse_label"].rank("dense").to_numpy().astype(np.int64) - 1
    x = TfIdf([rows["text"].to_list()]).vectors(rows["text"].to_list())
    folds, tolerance = [np.arange(len(y))[np.arange(len(y)) % 5 != fold] for fold in range(2)], 1e-4
    sparse, dense = (
        fit_logistic(form, torch.from_numpy(y), y.max() + 1, folds, [(1.0, 32.0)] * 2, tolerance=tolerance)
        for form in (x, torch.from_numpy(x.toarray()))
    )
    norms = dense[:, :, :-1].flatten(2).norm(dim=2)
    assert ((sparse - dense)[:, :, :-1].flatten(2).norm(dim=2) <= 2.01 * tolerance * norms.clamp_min(1.0)).all()


def words(texts: int, vocabulary: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw unit rows of six words whose frequencies depend on the class; the last words are in no row."""
    random = np.random.default_rng(1)
    y = random.integers(0, classes, texts)
    likely = random.dirichlet(np.full(vocabulary - 5, 0.3), classes)
    counts = np.array([random.multinomial(6, likely[label]) for label in y])
    x = np.hstack([counts, np.zeros((texts, 5))])
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


@pytest.mark.parametrize("layout", ["nested", "kfold", "split"])
def test_sparse_and_dense_tasks_give_the_same_predictions(layout):
    x, y = words(180, 60, 2)
    ends = {
        "nested": {"all": 180},
        "kfold": {"train": 120, "test": 180},
        "split": {"train": 90, "dev": 130, "test": 180},
    }[layout]
    spans = np.split(np.arange(180), list(ends.values())[:-1])
    outcomes = []
    for form in (csr_array(x), x):
        parts = {name: Part(form[span], y[span], np.arange(len(span))) for name, span in zip(ends, spans, strict=True)}
        problem = make_problem("words", layout, parts, ("a", "b"), folds=3, seed=1)
        outcomes.append(probe([problem], "fast", CONFIG)[0])
    for sparse, dense in zip(*outcomes, strict=True):
        assert (sparse.dev, sparse.penalty) == (dense.dev, dense.penalty)
        assert sparse.predicted.tolist() == dense.predicted.tolist()


def test_nested_search_selects_and_predicts_like_scikit_learn():
    x, y = rows(160, 6, 2)
    task = make_problem("mr", "nested", {"all": Part(x, y, np.arange(160))}, ("a", "b"), folds=3, seed=1111)
    cutter = StratifiedKFold(n_splits=3, shuffle=True, random_state=1111)
    for outcome, (fit, test) in zip(probe([task], "fast", CONFIG)[0], cutter.split(x, y), strict=True):
        means = [
            round(100 * np.mean([exact(c, x[fit][a], y[fit][a]).score(x[fit][b], y[fit][b]) for a, b in cuts]), 2)
            for cuts in [list(cutter.split(x[fit], y[fit]))]
            for c in STRENGTHS["nested"]
        ]
        assert outcome.dev == tuple(means)
        assert outcome.penalty == STRENGTHS["nested"][int(np.argmax(means))]
        np.testing.assert_array_equal(outcome.predicted, exact(outcome.penalty, x[fit], y[fit]).predict(x[test]))


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_many_classes_solved_roughly_in_float32_score_as_converged_solutions(scale):
    """Own labels are scored so: 40 classes, unit vectors and vectors of an encoder that does not normalise."""
    x, y = rows(900, 32, 40)
    x *= np.float32(scale) / np.linalg.norm(x, axis=1, keepdims=True)
    spans = {"train": np.s_[:500], "dev": np.s_[500:700], "test": np.s_[700:]}
    parts = {name: Part(x[span], y[span], np.arange(len(y[span]))) for name, span in spans.items()}
    task = make_problem("own", "split", parts, tuple(map(str, range(40))), folds=3, seed=1)
    ((found,),) = probe([task], "fast", ProbeConfig(tolerance=1e-2), arithmetic=SINGLE)
    solved = [LogisticRegression(C=c, tol=1e-6, max_iter=10_000).fit(x[:500].astype(np.float64), y[:500])
              for c in STRENGTHS["split"]]  # fmt: skip
    dev = [100 * model.score(x[500:700], y[500:700]) for model in solved]
    assert found.dev == pytest.approx(dev, abs=0.1)
    test = solved[int(np.argmax(dev))].predict(x[700:])
    assert np.mean(found.predicted != test) <= 0.001


def test_what_does_not_converge_in_float32_is_solved_in_float64():
    x, y = rows(300, 8, 3)
    parts = {name: Part(x, y, np.arange(300)) for name in ("train", "dev", "test")}
    task = make_problem("own", "split", parts, ("a", "b", "c"), folds=3, seed=1)
    beyond = ProbeConfig(tolerance=1e-11)
    with pytest.raises(NotConvergedError, match=r"not converged after 20 iterations .*raise tolerance"):
        fit_logistic(
            torch.from_numpy(x), torch.from_numpy(y), 3, [np.arange(300)], [(1.0,)],
            tolerance=1e-11, arithmetic=SINGLE._replace(most=20),
        )  # fmt: skip
    single, exactly = (probe([task], "fast", beyond, arithmetic=one)[0][0] for one in (SINGLE, EXACT))
    assert single.dev == exactly.dev
    assert single.predicted.tolist() == exactly.predicted.tolist()


def exact(c: float, x: np.ndarray, y: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=c, solver="newton-cholesky", tol=1e-8).fit(x.astype(np.float64), y)


def test_separable_classes_reach_perfect_accuracy():
    x, y = rows(90, 4, 2)
    x[:, 0] = np.where(y == 1, 50, -50)
    task = make_problem("easy", "nested", {"all": Part(x, y, np.arange(90))}, ("a", "b"), folds=3, seed=1111)
    assert all(outcome.right.all() for outcome in probe([task], "fast", CONFIG)[0])


def test_solver_converges_on_unbalanced_classes_and_feature_scales():
    """Like TREC on BERT-flow latents: with the mean curvature of the classes, a thousand steps were too few."""
    random, widths = np.random.default_rng(0), np.geomspace(30, 0.1, 128)
    x = (random.standard_t(4, (1500, 128)) * widths).astype(np.float32)
    scores_NK = 0.9 * x @ (random.standard_normal((128, 6)) / widths[:, None]) + np.array([0, 0, 0, 0, 0, -6.0])
    y = (scores_NK + 1.5 * random.gumbel(size=(1500, 6))).argmax(axis=1)
    fold = np.delete(np.arange(1500), np.s_[::10])
    found = fit_logistic(torch.from_numpy(x), torch.from_numpy(y), 6, [fold], [(1024.0,)]).numpy()
    slope = gradient(x[fold], y[fold], 1024.0, found[0, 0], 6)
    assert np.linalg.norm(slope[:-1]) <= 2e-4 * np.linalg.norm(found[0, 0])


def test_accuracy_interval_matches_the_binomial_approximation():
    x, y = rows(100, 4, 2)
    parts = {name: Part(x, y, np.arange(100)) for name in ("train", "test")}
    task = make_problem("mrpc", "kfold", parts, ("0", "1"), folds=3, seed=1111)
    predicted = np.where(np.arange(100) < 80, y, 1 - y)
    config = BootstrapConfig(resamples=20_000)
    accuracy, f1 = probe_rows(task, [Outcome((), 1.0, predicted, predicted == y)], "fast", config, f1=True)
    assert accuracy.value == 0.8
    # The normal approximation of the binomial, within half a row.
    assert accuracy.ci_low == pytest.approx(0.8 - 1.96 * 0.04, abs=0.006)
    assert accuracy.ci_high == pytest.approx(0.8 + 1.96 * 0.04, abs=0.006)
    both, errors = int(((y == 1) & (predicted == 1)).sum()), 20
    assert f1.value == round(2 * both / (2 * both + errors), 4)
    assert f1.ci_low < f1.value < f1.ci_high
    assert (accuracy.metric, f1.metric, accuracy.split, accuracy.n) == ("accuracy", "f1", "test", 100)


def broken(change: str) -> dict[str, Part]:
    x, y = rows(30, 4, 2)
    if change == "nan":
        x[17, 2] = np.nan
    if change == "short":
        y = y[:-1]
    if change == "empty":
        x, y = x[:0], y[:0]
    if change == "single":
        y = np.zeros_like(y)
    if change == "rare":
        y = (np.arange(30) == 5).astype(np.int64)
    if change == "class":
        y[4] = 2
    return {"all": Part(x, y, np.arange(len(y)))}


@every(
    [
        ("nan", "mr all: the embedding of row 17 is not finite"),
        ("short", r"mr all: features of shape \(30, 4\) and 29 labels"),
        ("empty", "mr all: no rows"),
        ("single", "mr: class 'b' has 0 of 30 rows"),
        ("rare", "mr: class 'b' has 1 of 30 rows, the first in row 5, expected at least 5"),
        ("class", "mr all: row 4 has class 2, expected 0 to 1"),
    ]
)
def test_invalid_probe_rows_error_names_task_and_cause(change, words):
    with pytest.raises(EvaluationError, match=words):
        make_problem("mr", "nested", broken(change), ("a", "b"), folds=3, seed=1111)
