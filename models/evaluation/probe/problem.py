"""Classification tasks as features, classes and folds; one representation for SentEval's three layouts.

    nested  (MR, CR, SUBJ, MPQA)  10 outer folds, each with an inner cross-validation and a last fit
    kfold   (TREC, MRPC)          one outer fold: train | test, with a cross-validation on train and a last fit
    split   (SST-2, SST-5)        one outer fold with one inner: train | dev; no last fit

Features are dense, or sparse for TF-IDF.

Shapes: N rows, D features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Union

import numpy as np
from scipy.sparse import csr_array, hstack, vstack
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from bsl.models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Features = Union["NDArray[np.float32]", csr_array]
Layout = Literal["nested", "kfold", "split"]
NESTED_SEED: Final = 1111  # hard-coded in SentEval's InnerKFoldClassifier, which ignores the configured seed


@dataclass(frozen=True)
class Inner:
    """One fit of a search: training rows and dev rows."""

    fit: NDArray[np.int64]
    dev: NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """One fold to fit under several regularisations.

    Attributes:
        rows: Training rows, and dev rows for early stopping.
        penalties: The regularisations, (R,): weight decays of Adam, or scikit-learn's C.
        held_out_of: Number of rows from which a last fit drew its dev rows, the first draw of its random stream; None
            if the dev rows were given.
    """

    rows: Inner
    penalties: tuple[float, ...]
    held_out_of: int | None = None

    def moved(self, by: int) -> Fit:
        """Return the fit with all row numbers increased by `by`."""
        return replace(self, rows=Inner(self.rows.fit + by, self.rows.dev + by))


@dataclass(frozen=True)
class Outer:
    """One outer fold: its search and its test.

    Attributes:
        train: Rows of the last fit.
        test: Test rows.
        inner: The fits of the search over regularisations.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    inner: tuple[Inner, ...]


@dataclass(frozen=True)
class Problem:
    """One classification task.

    Attributes:
        name: Name for messages and tables.
        features: Dense float32, or sparse without unused columns.
        labels: Class numbers from 0.
        classes: Number of classes.
        layout: The task's layout, one for each of SentEval's three classifiers.
        folds: Outer folds in SentEval's order.
    """

    name: str
    features: Features
    labels: NDArray[np.int64]
    classes: int
    layout: Layout
    folds: tuple[Outer, ...]


@dataclass(frozen=True)
class Part:
    """The rows of one split.

    Attributes:
        features: (N, D).
        labels: (N,) class numbers.
        order: (N,) row numbers in SentEval's order.
        unit: (N,) group number of each row; rows of one group are in one fold. None if each row is alone.
    """

    features: Features
    labels: NDArray[np.int64]
    order: NDArray[np.int64]
    unit: NDArray[np.int64] | None = None


def make_problem(
    name: str, layout: Layout, parts: dict[str, Part], classes: tuple[str, ...], *, folds: int, seed: int
) -> Problem:
    """Check the rows, sort them in SentEval's order and make the folds.

    Args:
        name: Name of the dataset.
        layout: `nested` needs the part `all`, `kfold` needs `train` and `test`, `split` also `dev`.
        parts: Split → rows.
        classes: Name of each class, for messages.
        folds: Number of folds of the cross-validations.
        seed: Seed of the folds of layout `kfold`; `nested` uses `NESTED_SEED`.

    Raises:
        EvaluationError: Lengths differ, a feature is not finite, a split is empty, or a class has too few rows for the
            folds; the message names the dataset and the row.
    """
    for split, part in parts.items():
        _check(f"{name} {split}", part, len(classes))
    needed = {"nested": folds**2 // (folds - 1) + 1, "kfold": folds, "split": 1}[layout]
    _check_classes(name, next(iter(parts.values())).labels, classes, needed, folds)
    features = _stacked([part.features[part.order] for part in parts.values()])
    labels = np.concatenate([part.labels[part.order] for part in parts.values()])
    ends = np.cumsum([len(part.labels) for part in parts.values()])
    spans = dict(zip(parts, np.split(np.arange(len(labels)), ends[:-1]), strict=True))
    units = [np.arange(len(part.labels)) if part.unit is None else part.unit[part.order] for part in parts.values()]
    cuts = _folds(layout, spans, labels, np.concatenate(units), folds, seed)
    return Problem(name, features, labels, len(classes), layout, cuts)


def _folds(
    layout: Layout,
    spans: dict[str, NDArray[np.int64]],
    labels: NDArray[np.int64],
    units: NDArray[np.int64],
    folds: int,
    seed: int,
) -> tuple[Outer, ...]:
    if layout == "split":
        return (Outer(spans["train"], spans["test"], (Inner(spans["train"], spans["dev"]),)),)
    if layout == "kfold":
        return (Outer(spans["train"], spans["test"], search_folds(spans["train"], labels, units, folds, seed)),)
    outer = stratified(spans["all"], labels, units, folds, NESTED_SEED)
    return tuple(Outer(cut.fit, cut.dev, search_folds(cut.fit, labels, units, folds, NESTED_SEED)) for cut in outer)


def stratified(
    rows: NDArray[np.int64], labels: NDArray[np.int64], units: NDArray[np.int64], folds: int, seed: int
) -> tuple[Inner, ...]:
    """Return folds with equal shares of each class; rows of one unit are in one fold, if there are several units.

    If no class has two rows, the only fold fits and judges all rows.

    Args:
        rows: Row numbers to divide.
        labels: Class number of every row.
        units: Group number of every row.
        folds: Number of folds; fewer if there are fewer units, or fewer rows of the largest class.
        seed: Seed of the draw.
    """
    of_rows = units[rows]
    count = len(np.unique(of_rows))
    folds = min(folds, int(np.bincount(labels[rows]).max()))
    if folds < 2:
        return (Inner(rows, rows),)
    if count in (1, len(rows)):
        cutter, groups = StratifiedKFold(folds, shuffle=True, random_state=seed), None
    else:
        cutter, groups = StratifiedGroupKFold(min(folds, count), shuffle=True, random_state=seed), of_rows
    cuts = cutter.split(np.zeros(len(rows)), labels[rows], groups)
    return tuple(Inner(rows[fit], rows[dev]) for fit, dev in cuts if len(dev))


def search_folds(
    rows: NDArray[np.int64], labels: NDArray[np.int64], units: NDArray[np.int64], folds: int, seed: int
) -> tuple[Inner, ...]:
    """Return the folds of `stratified` whose fit has rows of every class.

    A fit without a class, all of whose rows are of the held-out units, says nothing about the regularisation or the
    calibration of a fit with it. If all folds lack a class, rows of one unit are divided.
    """
    cuts, classes = stratified(rows, labels, units, folds, seed), len(np.unique(labels[rows]))
    complete = tuple(cut for cut in cuts if len(np.unique(labels[cut.fit])) == classes)
    return complete or stratified(rows, labels, np.arange(len(labels)), folds, seed)


def _stacked(parts: Sequence[Features]) -> Features:
    if any(isinstance(part, csr_array) for part in parts):
        return used_columns(csr_array(vstack(parts)))
    return np.concatenate(parts)


def _check(name: str, part: Part, classes: int) -> None:
    if part.features.ndim != 2 or part.features.shape[0] != len(part.labels):
        raise EvaluationError(
            f"{name}: features of shape {part.features.shape} and {len(part.labels)} labels, expected one row per "
            "label. Embed the sentences of this set again."
        )
    if len(part.labels) == 0:
        raise EvaluationError(f"{name}: no rows, expected labelled rows. Check the source of this set.")
    bad = _not_finite(part.features)
    if len(bad):
        raise EvaluationError(
            f"{name}: the embedding of row {bad[0]} is not finite ({len(bad)} of {len(part.labels)} rows). Check the "
            "encoder."
        )
    wrong = np.flatnonzero((part.labels < 0) | (part.labels >= classes))
    if len(wrong):
        raise EvaluationError(
            f"{name}: row {wrong[0]} has class {part.labels[wrong[0]]}, expected 0 to {classes - 1}. Correct its label."
        )


def _not_finite(features: Features) -> NDArray[np.int64]:
    """Return the rows with a value that is not finite."""
    if isinstance(features, csr_array):
        return np.unique(features.nonzero()[0][~np.isfinite(features.data[features.data != 0])])
    return np.flatnonzero(~np.isfinite(features).all(axis=1))


def _check_classes(name: str, labels: NDArray[np.int64], classes: tuple[str, ...], needed: int, folds: int) -> None:
    counts = np.bincount(labels, minlength=len(classes))
    rare = int(counts.argmin())
    if counts[rare] < needed:
        first = np.flatnonzero(labels == rare)
        where = f", the first in row {first[0]}" if len(first) else ""
        raise EvaluationError(
            f"{name}: class {classes[rare]!r} has {counts[rare]} of {len(labels)} rows{where}, expected at least "
            f"{needed} so that each of {folds} folds contains one. Use fewer folds, or a source with more rows of it."
        )


def pair_features(one_ND: Features, two_ND: Features) -> Features:
    """Return SentEval's features of sentence pairs: [|u − v|, u · v], (N, 2D)."""
    if isinstance(one_ND, csr_array):
        return csr_array(hstack([abs(one_ND - two_ND), one_ND.multiply(two_ND)]))
    return np.hstack([np.abs(one_ND - two_ND), one_ND * two_ND])


def senteval_order(texts: list[list[str]], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return SentEval's row order, on which its folds depend: by word count of each text, then class; a stable sort."""
    words = [np.array([len(text.split()) for text in column]) for column in texts]
    return np.lexsort((labels, *reversed(words)))


def used_columns(table_NV: csr_array) -> csr_array:
    """Drop columns without any non-zero value (keep at least one): a linear classifier's weights there would be 0."""
    used = np.unique(table_NV.indices[table_NV.data != 0])
    return csr_array(table_NV[:, used if len(used) else [0]])
