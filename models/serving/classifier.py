"""A linear classifier on an encoder's vectors: logistic regression, with calibrated probabilities.

- Regularisation: scikit-learn's C with the best accuracy in five folds; the same folds and values as of
  `bsl.models.evaluation.labels.class_accuracies`, so that the accuracy in a verdict is that of this classifier.
- Calibration: the scores are divided by a temperature, which minimises the log loss of held-out folds (Guo et al.,
  2017, *On Calibration of Modern Neural Networks*). A sigmoid for each class would have two parameters a class, which
  few rows do not determine, and would change predicted classes; a temperature changes none.
- Both are chosen on rows that the encoder was not trained on, if there are such: vectors of its training rows are
  closer to their class than those of new text.

Shapes: N rows, D width, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.probe.logistic import fit_logistic
from bsl.models.evaluation.probe.problem import NESTED_SEED, search_folds
from bsl.models.evaluation.probe.search import STRENGTHS
from bsl.storage.filesystem.model_folder import CLASSIFIER_SETTINGS
from bsl.storage.filesystem.os_errors import first_line
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

WEIGHTS: Final = "classifier.safetensors"
_FOLDS: Final = 5
_FEWEST: Final = 2  # rows of a class: each fold is trained on one
_HOTTEST: Final = 20.0  # the temperature and its inverse are at most this


class ClassifierSettings(Record):
    """Description of a classifier."""

    format: Literal[1] = 1
    """Version of the files."""
    classes: tuple[str, ...]
    """Names of the classes, in the order of the weights' columns."""
    width: int
    """Width of the vectors."""
    strength: float
    """scikit-learn's C."""
    temperature: float
    """Divisor of the scores."""
    rows: int
    """Number of training rows."""
    text_column: str
    """Column of the training texts."""


@dataclass(frozen=True)
class LinearClassifier:
    """A linear classifier.

    Attributes:
        settings: Classes, regularisation, temperature.
        weights: Weights, (D, C).
        bias: Biases, (C,).
    """

    settings: ClassifierSettings
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def scores(self, vectors_ND: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the score of each class, (N, C).

        Raises:
            EvaluationError: The vectors have another width.
        """
        if vectors_ND.shape[1] != self.settings.width:
            raise EvaluationError(
                f"classifier: vectors have {vectors_ND.shape[1]} dimensions (expected {self.settings.width}). Use the "
                "encoder that it was trained on."
            )
        scores_NC: NDArray[np.float64] = vectors_ND.astype(np.float64) @ self.weights + self.bias
        return scores_NC

    def probabilities(self, vectors_ND: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the calibrated probability of each class, (N, C)."""
        probabilities_NC: NDArray[np.float64] = softmax(self.scores(vectors_ND) / self.settings.temperature, axis=1)
        return probabilities_NC

    def save(self, folder: Path) -> None:
        """Write weights and settings to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        # safetensors writes the memory of an array, whatever its strides.
        save_file({"weights": np.ascontiguousarray(self.weights), "bias": self.bias}, folder / WEIGHTS)
        (folder / CLASSIFIER_SETTINGS).write_text(self.settings.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a classifier from its folder.

        Raises:
            EvaluationError: A file is missing, damaged or of a newer format, or weights and settings do not agree.
        """
        try:
            settings = ClassifierSettings.model_validate_json((folder / CLASSIFIER_SETTINGS).read_bytes())
            tensors = load_file(folder / WEIGHTS)
            weights_DC, bias_C = tensors["weights"], tensors["bias"]
        except Exception as error:  # each library has its own errors of damaged files
            raise EvaluationError(
                f"{folder}: not a classifier ({first_line(error)}; expected {CLASSIFIER_SETTINGS} and {WEIGHTS} of "
                "`bsl adapt --labels`). Export it again."
            ) from error
        shape = (settings.width, len(settings.classes))
        if weights_DC.shape != shape or bias_C.shape != shape[1:]:
            raise EvaluationError(
                f"{folder / WEIGHTS}: weights of shape {weights_DC.shape} (expected {shape}, as "
                f"{CLASSIFIER_SETTINGS} says). Copy "
                "both files of one classifier."
            )
        return cls(settings, weights_DC, bias_C)


def fit_classifier(
    vectors_ND: NDArray[np.float32],
    gold_N: NDArray[np.int64],
    classes: Sequence[str],
    *,
    text_column: str = "",
    is_new_N: NDArray[np.bool_] | None = None,
    unit_N: NDArray[np.int64] | None = None,
) -> LinearClassifier:
    """Train a classifier; choose regularisation and temperature on held-out folds.

    Args:
        vectors_ND: Vectors of the rows, in SentEval's order, on which the folds depend.
        gold_N: Class numbers.
        classes: Names of the classes.
        text_column: Column of the texts, for the settings.
        is_new_N: Rows that the encoder was not trained on; by default all, also if no fold holds out any of them.
        unit_N: Unit of each row, such as its writer; rows of one unit are in one fold (`search_folds`). By default each
            row is alone.

    Raises:
        EvaluationError: There are fewer than two classes, or a class has fewer than two rows.
    """
    _check(gold_N, classes)
    strengths = STRENGTHS["kfold"]
    rows_N = np.arange(len(gold_N))
    count = min(_FOLDS, int(np.bincount(gold_N).min()))  # folds: as many as the smallest class has rows
    folds = search_folds(rows_N, gold_N, rows_N if unit_N is None else unit_N, count, NESTED_SEED)
    judged_N = np.isin(rows_N, np.concatenate([fold.dev for fold in folds]))
    new_N = judged_N if is_new_N is None or not (is_new_N & judged_N).any() else is_new_N & judged_N
    searched_FRPC = _fit(vectors_ND, gold_N, len(classes), [fold.fit for fold in folds], strengths)
    held_out_RNC = np.empty((len(strengths), len(gold_N), len(classes)))
    for fold, weights_RPC in zip(folds, searched_FRPC, strict=True):
        held_out_RNC[:, fold.dev] = vectors_ND[fold.dev] @ weights_RPC[:, :-1] + weights_RPC[:, -1:]
    right_RN = held_out_RNC.argmax(axis=2) == gold_N
    tests = [fold.dev[new_N[fold.dev]] for fold in folds if new_N[fold.dev].any()]
    percents_R = np.mean([100 * right_RN[:, test].mean(axis=1) for test in tests], axis=0)
    best = int(percents_R.round(2).argmax())  # as SentEval: the first of equal accuracies
    weights_PC = _fit(vectors_ND, gold_N, len(classes), [np.arange(len(gold_N))], (strengths[best],))[0, 0]
    settings = ClassifierSettings(
        classes=tuple(classes),
        width=vectors_ND.shape[1],
        strength=strengths[best],
        temperature=temperature(held_out_RNC[best, new_N], gold_N[new_N]),
        rows=len(gold_N),
        text_column=text_column,
    )
    return LinearClassifier(settings, weights_PC[:-1].astype(np.float32), weights_PC[-1].astype(np.float32))


def temperature(scores_NC: NDArray[np.float64], gold_N: NDArray[np.int64]) -> float:
    """Return the divisor of scores that minimises their log loss.

    As in Platt (1999), the target of a row's class is (N + 1) / (N + 2): without an error among N rows, no temperature
    would be best, and probabilities of 1 would be wrong for new text.
    """
    rows, classes = scores_NC.shape
    target_NC = np.full((rows, classes), 1 / (rows + 2) / (classes - 1))
    target_NC[np.arange(rows), gold_N] = (rows + 1) / (rows + 2)

    def loss(log_temperature: float) -> float:
        return -float((target_NC * log_softmax(scores_NC / np.exp(log_temperature), axis=1)).sum())

    most = float(np.log(_HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=(-most, most), method="bounded").x))


def _fit(
    vectors_ND: NDArray[np.float32],
    gold_N: NDArray[np.int64],
    classes: int,
    fits: list[NDArray[np.int64]],
    strengths: tuple[float, ...],
) -> NDArray[np.float64]:
    """Return the weights of every fit under every C, (F, R, D + 1, C), the last row the biases."""
    x_ND, y_N = torch.from_numpy(np.ascontiguousarray(vectors_ND)), torch.from_numpy(gold_N)
    found: NDArray[np.float64] = fit_logistic(x_ND, y_N, classes, fits, [strengths] * len(fits)).numpy()
    return found


def _check(gold_N: NDArray[np.int64], classes: Sequence[str]) -> None:
    counts = np.bincount(gold_N, minlength=len(classes))
    if len(classes) < 2 or counts.min() < _FEWEST:
        rare = f"class {classes[int(counts.argmin())]!r} has {counts.min()} rows" if len(classes) else "no class"
        raise EvaluationError(
            f"classifier: {len(classes)} classes, {rare} (expected at least two classes with {_FEWEST} rows each). "
            "Label more rows."
        )
