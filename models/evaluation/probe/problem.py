"""A classification task as features, classes and folds; the three layouts of SentEval are one.

    nested  (MR, CR, SUBJ, MPQA)  10 outer folds, in each an inner cross-validation and a last fit
    kfold   (TREC, MRPC)          one outer fold: train | test, with a cross-validation on train and a last fit
    split   (SST-2, SST-5)        one outer fold with one inner: train | dev; the searched model is the last

Features are dense, or sparse where vectors are words.

Shapes: N rows, D features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Union

import numpy as np
from scipy.sparse import csr_array, hstack, vstack
from sklearn.model_selection import StratifiedKFold

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Features = Union["NDArray[np.float32]", csr_array]
Layout = Literal["nested", "kfold", "split"]
NESTED_SEED: Final = 1111  # written into SentEval's InnerKFoldClassifier, whatever its seed is


@dataclass(frozen=True)
class Inner:
    """One fit of a search: the rows it learns from and the rows it is judged by."""

    fit: NDArray[np.int64]
    dev: NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """One fold to be learnt under several regularisations.

    Attributes:
        rows: what it learns from, and what it stops by where the protocol stops early.
        penalties: the regularisations, (R,): weight decays of Adam, or scikit-learn's C.
        held_out_of: rows that the dev rows were drawn from, where the fit drew them itself (before its first order).
    """

    rows: Inner
    penalties: tuple[float, ...]
    held_out_of: int | None = None

    def moved(self, by: int) -> Fit:
        """The same fit where its task's rows begin at row `by`."""
        return replace(self, rows=Inner(self.rows.fit + by, self.rows.dev + by))


@dataclass(frozen=True)
class Outer:
    """One test: its search and its rows.

    Attributes:
        train: what the last fit may see.
        test: what it is tested on.
        inner: the fits of the search over regularisations.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    inner: tuple[Inner, ...]


@dataclass(frozen=True)
class Problem:
    """One task, ready to be probed.

    Attributes:
        name: for messages and tables.
        features: dense, float32; sparse ones without the columns that no row uses.
        labels: class numbers from 0.
        classes: how many.
        layout: which of SentEval's three classifiers runs it.
        folds: in SentEval's order.
    """

    name: str
    features: Features
    labels: NDArray[np.int64]
    classes: int
    layout: Layout
    folds: tuple[Outer, ...]


@dataclass(frozen=True)
class Part:
    """The rows of one split: features (N, D), class numbers (N,), and each row's place in SentEval's sorted order."""

    features: Features
    labels: NDArray[np.int64]
    order: NDArray[np.int64]


def make_problem(
    name: str, layout: Layout, parts: dict[str, Part], classes: tuple[str, ...], *, folds: int, seed: int
) -> Problem:
    """Check the rows, put them into SentEval's order and cut the folds.

    Args:
        name: data set.
        layout: `nested` wants the part `all`, `kfold` `train` and `test`, `split` `dev` too.
        parts: split to rows.
        classes: name of each class, for messages.
        folds: of the cross-validations.
        seed: of the folds of layout `kfold`; `nested` has its own.

    Raises:
        EvaluationError: lengths differ, a feature is not finite, a split is empty or of one class, or a class has
            fewer rows than there are folds; the message names the data set and the row.
    """
    for split, part in parts.items():
        _check(f"{name} {split}", part, len(classes))
    needed = {"nested": folds**2 // (folds - 1) + 1, "kfold": folds, "split": 1}[layout]
    _check_classes(name, next(iter(parts.values())).labels, classes, needed, folds)
    features = _stacked([part.features[part.order] for part in parts.values()])
    labels = np.concatenate([part.labels[part.order] for part in parts.values()])
    ends = np.cumsum([len(part.labels) for part in parts.values()])
    spans = dict(zip(parts, np.split(np.arange(len(labels)), ends[:-1]), strict=True))
    return Problem(name, features, labels, len(classes), layout, _folds(layout, spans, labels, folds, seed))


def _folds(
    layout: Layout, spans: dict[str, NDArray[np.int64]], labels: NDArray[np.int64], folds: int, seed: int
) -> tuple[Outer, ...]:
    if layout == "split":
        return (Outer(spans["train"], spans["test"], (Inner(spans["train"], spans["dev"]),)),)
    if layout == "kfold":
        return (Outer(spans["train"], spans["test"], _stratified(spans["train"], labels, folds, seed)),)
    outer = _stratified(spans["all"], labels, folds, NESTED_SEED)
    return tuple(Outer(cut.fit, cut.dev, _stratified(cut.fit, labels, folds, NESTED_SEED)) for cut in outer)


def _stratified(rows: NDArray[np.int64], labels: NDArray[np.int64], folds: int, seed: int) -> tuple[Inner, ...]:
    cutter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    return tuple(Inner(rows[fit], rows[dev]) for fit, dev in cutter.split(np.zeros(len(rows)), labels[rows]))


def _stacked(parts: Sequence[Features]) -> Features:
    if any(isinstance(part, csr_array) for part in parts):
        return used_columns(csr_array(vstack(parts)))
    return np.concatenate(parts)


def _check(place: str, part: Part, classes: int) -> None:
    if part.features.ndim != 2 or part.features.shape[0] != len(part.labels):
        raise EvaluationError(
            f"{place}: features of shape {part.features.shape}, {len(part.labels)} labels, expected one row a label; "
            "embed the sentences of this set again"
        )
    if len(part.labels) == 0:
        raise EvaluationError(f"{place}: no rows, expected a labelled set; look at its source")
    bad = _not_finite(part.features)
    if len(bad):
        raise EvaluationError(
            f"{place}: the embedding of row {bad[0]} is not finite ({len(bad)} of {len(part.labels)} rows); look at "
            "the encoder that made it"
        )
    wrong = np.flatnonzero((part.labels < 0) | (part.labels >= classes))
    if len(wrong):
        raise EvaluationError(
            f"{place}: row {wrong[0]} has class {part.labels[wrong[0]]}, expected 0 to {classes - 1}; correct its label"
        )


def _not_finite(features: Features) -> NDArray[np.int64]:
    """Rows that hold a value that is not finite."""
    if isinstance(features, csr_array):
        return np.unique(features.nonzero()[0][~np.isfinite(features.data[features.data != 0])])
    return np.flatnonzero(~np.isfinite(features).all(axis=1))


def _check_classes(name: str, labels: NDArray[np.int64], classes: tuple[str, ...], needed: int, folds: int) -> None:
    counts = np.bincount(labels, minlength=len(classes))
    rare = int(counts.argmin())
    if counts[rare] < needed:
        first = np.flatnonzero(labels == rare)
        where = f"the first in row {first[0]}" if len(first) else "none"
        raise EvaluationError(
            f"{name}: class {classes[rare]!r} has {counts[rare]} of {len(labels)} rows ({where}), expected at least "
            f"{needed} so that each of {folds} folds can hold one; use fewer folds, or a source with all classes"
        )


def pair_features(one_ND: Features, two_ND: Features) -> Features:
    """What SentEval makes of a pair of sentences: [|u − v|, u · v], (N, 2D)."""
    if isinstance(one_ND, csr_array):
        return csr_array(hstack([abs(one_ND - two_ND), one_ND.multiply(two_ND)]))
    return np.hstack([np.abs(one_ND - two_ND), one_ND * two_ND])


def senteval_order(texts: list[list[str]], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """SentEval's order of rows, on which its folds depend: by words of each text, then by class, then as they came."""
    words = [np.array([len(text.split()) for text in column]) for column in texts]
    return np.lexsort((labels, *reversed(words)))


def used_columns(table_NV: csr_array) -> csr_array:
    """Only the columns in which a row has something, at least one: a linear classifier's other weights would be 0."""
    used = np.unique(table_NV.indices[table_NV.data != 0])
    return csr_array(table_NV[:, used if len(used) else [0]])
