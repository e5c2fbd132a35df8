"""Somebody's labels as evidence: scored pairs by the order of their cosines, classes by the exact probe.

Shapes: N rows, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.errors import EvaluationError
from models.evaluation.correlation import cosine_scores, spearman
from models.evaluation.paired import Difference, paired_difference
from models.evaluation.probe.config import ProbeConfig
from models.evaluation.probe.problem import Part, make_problem, senteval_order
from models.evaluation.retrieval import mean_difference
from models.shuffle import scattered
from models.text.normalize import normalize, sentence_ids

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

    from models.evaluation.retrieval import Encode

_PROBE: Final = ProbeConfig(protocols=("fast",), folds=5)
_FEWEST: Final = 20  # rows of a half
_FEWEST_OF_A_CLASS: Final = 7  # rows of a half, so that each of the probe's folds within folds holds one


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


def halves_of(rows: pl.DataFrame, kind: Literal["pairs", "classes"], seed: int) -> dict[str, Labelled]:
    """Labelled rows in two halves, `choose` and `report`; rows of one first sentence stay together.

    Args:
        rows: `text_1`, `text_2`, `label`.
        kind: what the labels are.
        seed: decides which row goes where.

    Raises:
        EvaluationError: a half has too few rows, or too few of a class.
    """
    names = tuple(sorted(rows["label"].unique())) if kind == "classes" else ()
    place = scattered(sentence_ids(normalize(pl.col("text_1"))), seed) % 2
    halves = {}
    for number, part in enumerate(("choose", "report")):
        own = rows.filter(place == number)
        if own.height < _FEWEST:
            raise EvaluationError(
                f"{rows.height} labelled rows of text that is not learnt leave {own.height} for the half {part!r}, "
                f"expected at least {_FEWEST} in each; label more, or leave --labels out"
            )
        rare = own["label"].value_counts().sort("count").row(0) if names else ("", _FEWEST)
        if own["label"].n_unique() < len(names) or rare[1] < _FEWEST_OF_A_CLASS:
            raise EvaluationError(
                f"class {rare[0]!r} has {rare[1]} rows in the half {part!r}, and {own['label'].n_unique()} of "
                f"{len(names)} classes are there, expected at least {_FEWEST_OF_A_CLASS} rows of each; label more of "
                "the rare classes, or leave them out"
            )
        label = own["label"].replace_strict(names, range(len(names))) if names else own["label"]
        gold = label.cast(pl.Float64).to_numpy()
        second = () if names else tuple(own["text_2"].fill_null(""))
        halves[part] = Labelled(kind, tuple(own["text_1"]), second, gold, names)
    return halves


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
