"""Somebody's labels as evidence: scored pairs by the order of their cosines, classes by the exact probe.

Shapes: N rows, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.evaluation.config import ProbeConfig
from models.evaluation.correlation import cosine_scores, spearman
from models.evaluation.probe.problem import Part, make_problem, senteval_order
from models.evaluation.retrieval import mean_difference
from models.evaluation.significance.paired import Difference, paired_difference

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

    from models.evaluation.retrieval import Encode

_PROBE: Final = ProbeConfig(protocols=("fast",), folds=5)


@dataclass(frozen=True)
class Labelled:
    """Labelled text.

    Attributes:
        kind: `pairs` with scores, or `classes`.
        first: (N,) texts.
        second: (N,) the other texts of pairs; empty of classes.
        gold: (N,) scores, or class numbers from 0.
        names: of the classes; empty of pairs.
    """

    kind: Literal["pairs", "classes"]
    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: NDArray[np.float64]
    names: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """What its figure is."""
        return "Spearman" if self.kind == "pairs" else "accuracy"

    def __len__(self) -> int:
        return len(self.first)


def labelled_of(rows: pl.DataFrame, kind: Literal["pairs", "classes"], names: tuple[str, ...]) -> Labelled:
    """Labelled rows as evidence.

    Args:
        rows: `text_1`, `text_2`, `label`.
        kind: what the labels are.
        names: of all classes, in order; empty of pairs.
    """
    label = rows["label"].replace_strict(names, range(len(names))) if names else rows["label"]
    second = () if names else tuple(rows["text_2"].fill_null(""))
    return Labelled(kind, tuple(rows["text_1"]), second, label.cast(pl.Float64).to_numpy(), names)


def per_row(encode: Encode, labelled: Labelled) -> NDArray[np.float64]:
    """What an encoder makes of each row: (N,) cosines of pairs; of classes 1 where the held-out row is told right."""
    vectors_ND = encode(labelled.first)
    if labelled.kind == "pairs":
        return cosine_scores(vectors_ND, encode(labelled.second))
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


def figure(rows_N: NDArray[np.float64], labelled: Labelled) -> float:
    """Spearman in [-1, 1] of pairs, accuracy in [0, 1] of classes."""
    return spearman(rows_N, labelled.gold) if labelled.kind == "pairs" else float(rows_N.mean())


def compare_labelled(
    first_N: NDArray[np.float64], second_N: NDArray[np.float64], labelled: Labelled, *, resamples: int, seed: int
) -> Difference:
    """How much better the second encoder's rows are than the first's, on the same draws of rows."""
    if labelled.kind == "pairs":
        return paired_difference(first_N, second_N, labelled.gold, resamples=resamples, seed=seed)
    alone = {"labels": (second_N - first_N, np.arange(len(first_N)))}
    return mean_difference(alone, resamples=resamples, seed=seed)
