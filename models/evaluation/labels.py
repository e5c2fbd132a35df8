"""Evaluate an encoder on a user's labels: Spearman of scored pairs, or accuracies on classes.

Rows of classes that share a text or a group, such as a writer, are a unit: no row is judged by a classifier, a
neighbour or a centroid of its own unit, which would be found by the writer instead of the class. Rows of one pair,
rated several times, are a unit too. The bootstrap draws units. Its draws do not train a cross-validated classifier
anew, so intervals of the classifier are too narrow (docs/own-text.md). Draws of the grouping accuracy are scored anew
(`bsl.models.evaluation.grouping`).

Classes have two accuracies, because vectors are used in two ways. A classifier is trained on them; or texts of a class
are found near each other, by the nearest neighbour and by the nearest centroid of five examples. One encoder can gain
much in one way and little in the other, so the two accuracies are never averaged.

Shapes: N rows, D width, C classes.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.corpus.label_groups import connected_rows
from bsl.models.corpus.labels import DOCUMENT
from bsl.models.corpus.normalize import letters
from bsl.models.evaluation.config import ProbeConfig
from bsl.models.evaluation.grouping import centroid_accuracy, neighbour_accuracy
from bsl.models.evaluation.probe.problem import Part, make_problem, senteval_order

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

    from bsl.models.evaluation.probe.problem import Features
    from bsl.models.runtime.progress import OnProgress

_PROBE: Final = ProbeConfig(protocols=("fast",), folds=5)
_ROUGH_PROBE: Final = _PROBE.model_copy(update={"tolerance": 1e-2})
MANY_CELLS: Final = 10_000
"""Rows × classes from which the probe is solved roughly, in float32: 77 classes × 1,001 rows then take a fifth of the
time, and a row counts for less than a tenth of a point."""
_MOST_RECENT: Final = 64
_RECENT: Final[dict[bytes, ClassAccuracies]] = {}
_recent_lock: Final = threading.Lock()
"""Digest of vectors and labels → accuracies: systems are scored first, and then compared with each other."""


@dataclass(frozen=True)
class Labelled:
    """Texts with scores or classes.

    Attributes:
        kind: `pairs` with scores, or `classes`.
        first: (N,) texts.
        second: (N,) second texts of pairs; empty for classes.
        gold: (N,) scores, or class numbers from 0.
        names: Names of the classes; empty for pairs.
        unit: (N,) unit of each row; None if each row is alone.
    """

    kind: Literal["pairs", "classes"]
    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: NDArray[np.float64]
    names: tuple[str, ...] = ()
    unit: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.first)

    @property
    def units(self) -> NDArray[np.int64]:
        """The unit of each row, (N,)."""
        return np.arange(len(self)) if self.unit is None else self.unit


@dataclass(frozen=True)
class ClassAccuracies:
    """Accuracies of each row, in [0, 1].

    Attributes:
        classifier: (N,) 1 if a linear classifier finds the class of the row.
        grouping: (N,) mean of nearest neighbour and nearest centroid.
        predicted: (N,) class number that the classifier finds.
    """

    classifier: NDArray[np.float64]
    grouping: NDArray[np.float64]
    predicted: NDArray[np.int64]


def labelled_of(rows: pl.DataFrame, kind: Literal["pairs", "classes"], names: tuple[str, ...] = ()) -> Labelled:
    """Convert a table with the columns `text_1`, `text_2` (of pairs), `label`, and perhaps `document`.

    Args:
        rows: The table.
        kind: Kind of the labels.
        names: Names of the classes, which number them; by default those of the table, sorted.
    """
    if kind == "classes":
        names = names or tuple(sorted(rows["label"].unique()))
    label = rows["label"].replace_strict(names, range(len(names))) if names else rows["label"]
    second = () if names else tuple(rows["text_2"].fill_null(""))
    gold = label.cast(pl.Float64).to_numpy()
    return Labelled(kind, tuple(rows["text_1"]), second, gold, names, _units(rows, kind))


def _units(rows: pl.DataFrame, kind: Literal["pairs", "classes"]) -> NDArray[np.int64] | None:
    """Return the unit of each row: documents, joined if texts are equal; documents alone if that joins most.

    Pairs are joined if both texts are equal, in any order: ratings of one pair by several people. One equal text joins
    no pairs, because pairs are not compared with each other. None if each row is alone.
    """
    groups = rows[DOCUMENT].cast(pl.String) if DOCUMENT in rows.columns else None
    key = letters(pl.col("text_1")) if kind == "classes" else _pair_key()
    texts = rows.select(key.alias("text_1")).to_series()
    if groups is None and kind == "pairs" and texts.n_unique() == rows.height:
        return None
    if rows.height:
        nodes = [texts.alias("node"), *([] if groups is None else [("group " + groups).alias("node")])]
        joined = connected_rows(rows.height, pl.concat(nodes))
        if joined.value_counts()["count"].max() <= rows.height / 2:  # type: ignore[operator]  # a count
            return joined.to_numpy()
    return None if groups is None else groups.rank("dense").to_numpy().astype(np.int64) - 1


def _pair_key() -> pl.Expr:
    """Return the letters of a pair as one string, equal for both orders."""
    sides = pl.concat_list(letters(pl.col("text_1")), letters(pl.col("text_2").fill_null(""))).list.sort()
    return sides.list.join("\0")


def class_accuracies(
    vectors_ND: Features,
    labelled: Labelled,
    training: tuple[Features, Labelled] | None = None,
    on_progress: OnProgress | None = None,
) -> ClassAccuracies:
    """Return the accuracies of each row; vectors may be sparse.

    A row without a centroid accuracy has that of its neighbour. A recent result for the same arguments is returned
    again.

    Args:
        vectors_ND: Vectors of the texts.
        labelled: Texts and classes.
        training: Vectors and classes of other rows, with which the classifier is trained; without them it is
            cross-validated on the texts themselves.
        on_progress: Called as (penalties of the classifier done, penalties in total, detail).
    """
    digest = hashlib.sha256(pickle.dumps((vectors_ND, labelled, training))).digest()
    with _recent_lock:
        known = _RECENT.get(digest)
    if known is not None:
        return known
    gold_N = labelled.gold.astype(np.int64)
    both = [of(vectors_ND, gold_N, labelled.units) for of in (neighbour_accuracy, centroid_accuracy)]
    grouping = np.nanmean(both, axis=0)
    predicted = _predicted(vectors_ND, labelled, training, on_progress)
    found = ClassAccuracies((predicted == gold_N).astype(np.float64), grouping, predicted)
    with _recent_lock:
        _RECENT[digest] = found
        while len(_RECENT) > _MOST_RECENT:
            del _RECENT[next(iter(_RECENT))]
    return found


def _predicted(
    vectors_ND: Features,
    labelled: Labelled,
    training: tuple[Features, Labelled] | None,
    on_progress: OnProgress | None,
) -> NDArray[np.int64]:
    """Return the class that a logistic regression, which did not learn from the row, finds for each row: (N,).

    The strength of its penalty is chosen by cross-validation on the rows it learns from.
    """
    from bsl.models.evaluation.probe.logistic import EXACT, SINGLE  # torch
    from bsl.models.evaluation.probe.search import probe

    part, folds = _part(vectors_ND, labelled), _PROBE.folds
    if training is None:
        problem = make_problem("labels", "nested", {"all": part}, labelled.names, folds=folds, seed=_PROBE.seed)
        first_test = 0
    else:
        learnt = _part(*training)
        folds = min(folds, int(np.bincount(learnt.labels).min()))
        parts = {"train": learnt, "test": part}
        problem = make_problem("labels", "kfold", parts, labelled.names, folds=folds, seed=_PROBE.seed)
        first_test = len(learnt.labels)
    cells = (first_test + len(labelled)) * problem.classes
    config, arithmetic = (_PROBE, EXACT) if cells < MANY_CELLS else (_ROUGH_PROBE, SINGLE)
    (outcomes,) = probe([problem], "fast", config, arithmetic=arithmetic, on_progress=on_progress)
    predicted_N = np.zeros(len(labelled), dtype=np.int64)
    for outer, outcome in zip(problem.folds, outcomes, strict=True):
        predicted_N[part.order[outer.test - first_test]] = outcome.predicted
    return predicted_N


def _part(vectors_ND: Features, labelled: Labelled) -> Part:
    classes = labelled.gold.astype(np.int64)
    return Part(vectors_ND, classes, senteval_order([list(labelled.first)], classes), labelled.units)
