"""What an encoder finds in somebody's own text, where nobody has labelled anything.

Given a sentence, find what belongs to it among all others of held-out documents: its neighbour in the document, its
title, its round trip through another language, the other half of its words. The figure is the mean reciprocal rank.

Shapes: N queries, M targets, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]

CHUNK: Final = 512  # queries of one product
SLACK: Final = 1e-6  # products whose difference is rounding count as ties


@dataclass(frozen=True)
class Retrieval:
    """What is to be found.

    Attributes:
        name: which relation a query has to what it should find.
        queries: (N,) texts.
        targets: (M,) texts among which is searched.
        gold: (N,) int64, the target that each query should find.
        unit: (N,) int64, whose queries are drawn together: a document, or a run of one.
        own: (N,) int64, the target that is the query itself and no answer; -1 where there is none.
    """

    name: str
    queries: tuple[str, ...]
    targets: tuple[str, ...]
    gold: NDArray[np.int64]
    unit: NDArray[np.int64]
    own: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.queries)


def reciprocal_ranks(encode: Encode, probe: Retrieval) -> NDArray[np.float64]:
    """One by the rank of each query's target by cosine: (N,), in (0, 1]; 1 where it is found first.

    Targets as near as the right one share its rank: the mean of those that they take.

    Args:
        encode: texts to vectors (n, D); the same text gets the same vector, so it may remember them.
        probe: what is to be found.

    Raises:
        EvaluationError: A query is its own answer, which no order of the others finds.
    """
    if len(same := np.flatnonzero(probe.own == probe.gold)):
        raise EvaluationError(
            f"probe {probe.name}: {len(same)} of {len(probe)} queries are their own answers (first: "
            f"{probe.queries[same[0]]!r}), expected none; leave such pairs out"
        )
    queries_ND, targets_MD = (_unit(encode(texts)) for texts in (probe.queries, probe.targets))
    out = np.empty(len(probe))
    for start in range(0, len(probe), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(probe)))
        near_NM = queries_ND[rows] @ targets_MD.T
        right_N1 = near_NM[np.arange(len(rows)), probe.gold[rows]][:, None]
        other = probe.own[rows]
        near_NM[np.flatnonzero(other >= 0), other[other >= 0]] = -np.inf
        above_N = (near_NM > right_N1 + SLACK).sum(axis=1)
        tied_N = (near_NM >= right_N1 - SLACK).sum(axis=1) - above_N - 1
        out[rows] = 1 / (1 + above_N + tied_N / 2)
    return out


def _unit(vectors_ND: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    unit_ND: NDArray[np.float32] = (vectors_ND / np.where(lengths_N1 > 0, lengths_N1, 1)).astype(np.float32, copy=False)
    return unit_ND
