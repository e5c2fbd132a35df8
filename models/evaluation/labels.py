"""Evaluate an encoder on a user's labels: Spearman of scored pairs, or accuracy on classes.

Vectors are used in three ways: a classifier is trained on them, they are searched, and a few examples define a class.
So accuracy on classes is the mean of a linear probe, of the nearest neighbour and of the nearest centroid of five
examples; the probe alone misses half of the gains (BENCHMARKS.md, *When BETTER is said*).

Shapes: N rows, D width, C classes.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from sklearn.preprocessing import normalize

from models.evaluation.config import ProbeConfig
from models.evaluation.metrics import nearest
from models.evaluation.probe.problem import Part, make_problem, senteval_order

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

    from models.evaluation.probe.problem import Features

_PROBE: Final = ProbeConfig(protocols=("fast",), folds=5)
EXAMPLES: Final = 5  # per class
DRAWS: Final = 20  # of examples
_MOST_RECENT: Final = 64
_RECENT: Final[dict[bytes, NDArray[np.float64]]] = {}
"""Digest of vectors and labels → accuracy of each row: systems are scored first, and then compared with each other."""


@dataclass(frozen=True)
class Labelled:
    """Texts with scores or classes.

    Attributes:
        kind: `pairs` with scores, or `classes`.
        first: (N,) texts.
        second: (N,) second texts of pairs; empty for classes.
        gold: (N,) scores, or class numbers from 0.
        names: Names of the classes; empty for pairs.
    """

    kind: Literal["pairs", "classes"]
    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: NDArray[np.float64]
    names: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """Name of the score."""
        return "spearman" if self.kind == "pairs" else "accuracy"

    def __len__(self) -> int:
        return len(self.first)


def labelled_of(rows: pl.DataFrame, kind: Literal["pairs", "classes"]) -> Labelled:
    """Convert a table with the columns `text_1`, `text_2` (of pairs) and `label`."""
    names = tuple(sorted(rows["label"].unique())) if kind == "classes" else ()
    label = rows["label"].replace_strict(names, range(len(names))) if names else rows["label"]
    second = () if names else tuple(rows["text_2"].fill_null(""))
    return Labelled(kind, tuple(rows["text_1"]), second, label.cast(pl.Float64).to_numpy(), names)


def class_accuracy(vectors_ND: Features, labelled: Labelled) -> NDArray[np.float64]:
    """Return the mean of the three accuracies of each row, (N,), in [0, 1]; vectors may be sparse.

    A recent result for the same vectors and labels is returned again.
    """
    digest = hashlib.sha256(pickle.dumps((vectors_ND, labelled))).digest()
    if digest not in _RECENT:
        gold_N = labelled.gold.astype(np.int64)
        search_N = neighbour_accuracy(vectors_ND, gold_N) + centroid_accuracy(vectors_ND, gold_N)
        if len(_RECENT) == _MOST_RECENT:
            del _RECENT[next(iter(_RECENT))]
        _RECENT[digest] = (_probe_accuracy(vectors_ND, labelled) + search_N) / 3
    return _RECENT[digest]


def _probe_accuracy(vectors_ND: Features, labelled: Labelled) -> NDArray[np.float64]:
    """Return 1 for each row whose class a linear probe predicts correctly when its fold is held out: (N,)."""
    from models.evaluation.probe.search import probe  # torch

    classes = labelled.gold.astype(np.int64)
    order = senteval_order([list(labelled.first)], classes)
    parts = {"all": Part(vectors_ND, classes, order)}
    problem = make_problem("labels", "nested", parts, labelled.names, folds=_PROBE.folds, seed=_PROBE.seed)
    (outcomes,) = probe([problem], "fast", _PROBE)
    right_N = np.zeros(len(labelled))
    for outer, outcome in zip(problem.folds, outcomes, strict=True):
        right_N[order[outer.test]] = outcome.right
    return right_N


def neighbour_accuracy(vectors_ND: Features, gold_N: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 for each row whose nearest other row by cosine has the same class: (N,)."""
    neighbours = enumerate(nearest(vectors_ND, vectors_ND, 2))
    found = [next(row for row in rows if row != query) for query, (rows, _) in neighbours]
    right_N: NDArray[np.bool_] = gold_N[found] == gold_N
    return right_N.astype(np.float64)


def centroid_accuracy(vectors_ND: Features, gold_N: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of draws in which the centroid nearest to a row is that of its class: (N,), in [0, 1].

    A draw takes `EXAMPLES` rows of each class, or half of a smaller class. Draws in which a row is an example do not
    count for that row.
    """
    units_ND = normalize(vectors_ND)
    generator, rows_N = np.random.default_rng(0), np.arange(len(gold_N))
    right_N, drawn_N = np.zeros(len(gold_N)), np.zeros(len(gold_N))
    for _ in range(DRAWS):
        shuffled = generator.permutation(rows_N)
        examples = [
            _examples(shuffled[gold_N[shuffled] == examples_of_class]) for examples_of_class in np.unique(gold_N)
        ]
        centroids_CD = normalize(
            [np.asarray(units_ND[examples_of_class].mean(axis=0)).ravel() for examples_of_class in examples]
        )
        others = np.setdiff1d(rows_N, np.concatenate(examples))
        right_N[others] += (units_ND[others] @ centroids_CD.T).argmax(axis=1) == gold_N[others]
        drawn_N[others] += 1
    return right_N / np.maximum(drawn_N, 1)


def _examples(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[: EXAMPLES if len(rows) >= EXAMPLES else max(1, len(rows) // 2)]
