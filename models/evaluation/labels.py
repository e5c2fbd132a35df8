"""Evaluate an encoder on a user's labels: Spearman of scored pairs, or probe accuracy on classes.

Shapes: N rows, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.evaluation.config import ProbeConfig
from models.evaluation.correlation import cosine_scores
from models.evaluation.probe.problem import Part, make_problem, senteval_order
from models.evaluation.significance.hierarchical import draws_of
from models.evaluation.sweep import outcome_draws

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from numpy.typing import NDArray

    from models.evaluation.retrieval import Encode
    from models.evaluation.significance.hierarchical import BootstrapDraws

_PROBE: Final = ProbeConfig(protocols=("fast",), folds=5)


@dataclass(frozen=True)
class Labelled:
    """Labelled text.

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
        return "Spearman" if self.kind == "pairs" else "accuracy"

    def __len__(self) -> int:
        return len(self.first)


def labelled_of(rows: pl.DataFrame, kind: Literal["pairs", "classes"], names: tuple[str, ...]) -> Labelled:
    """Convert a table of labelled rows.

    Args:
        rows: Columns `text_1`, `text_2`, `label`.
        kind: Kind of labels.
        names: Names of all classes, in order; empty for pairs.
    """
    label = rows["label"].replace_strict(names, range(len(names))) if names else rows["label"]
    second = () if names else tuple(rows["text_2"].fill_null(""))
    return Labelled(kind, tuple(rows["text_1"]), second, label.cast(pl.Float64).to_numpy(), names)


def per_row(encode: Encode, labelled: Labelled) -> NDArray[np.float64]:
    """Return the cosine of each pair, (N,); for classes, 1 if the held-out row's class is predicted correctly."""
    vectors_ND = encode(labelled.first)
    if labelled.kind == "pairs":
        return cosine_scores(vectors_ND, encode(labelled.second))
    classes = labelled.gold.astype(np.int64)
    from models.evaluation.probe.search import probe  # torch

    order = senteval_order([list(labelled.first)], classes)
    parts = {"all": Part(vectors_ND, classes, order)}
    problem = make_problem("labels", "nested", parts, labelled.names, folds=_PROBE.folds, seed=_PROBE.seed)
    (outcomes,) = probe([problem], "fast", _PROBE)
    right_N = np.zeros(len(labelled))
    for outer, outcome in zip(problem.folds, outcomes, strict=True):
        right_N[order[outer.test]] = outcome.right
    return right_N


def row_draws(
    rows: Sequence[NDArray[np.float64]], gold_N: NDArray[np.float64] | None, *, resamples: int, seed: int
) -> tuple[BootstrapDraws, ...]:
    """Return the bootstrap draws of several systems' scores, on the same draws of rows.

    Args:
        rows: For each system (S, N), one row per seed: values of `per_row`.
        gold_N: Gold scores of pairs; None for classes.
        resamples: Number of draws.
        seed: Seed of the draws.
    """
    if gold_N is None:
        return outcome_draws(rows, np.arange(rows[0].shape[1]), resamples=resamples, seed=seed)
    return tuple(draws_of(gold_N, cosines_SN, resamples=resamples, seed=seed) for cosines_SN in rows)
