"""Retrieval on a user's own text without labels, scored by mean reciprocal rank.

A query is a sentence of a held-out document. Its answer is the next sentence, the document's title, the other half of
its words or, for a round-trip translation, the original. Targets are the texts of this kind of all held-out documents.

Shapes: N queries, M targets, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bsl.models.errors import EvaluationError
from bsl.models.runtime.rows import unit_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]

CHUNK: Final = 512  # queries per matrix product
SLACK: Final = 1e-6  # cosines that differ by less are ties, since the difference is rounding


@dataclass(frozen=True)
class Retrieval:
    """Queries, targets and correct answers of one kind of question.

    Attributes:
        name: Relation of a query to its answer.
        queries: (N,) texts.
        targets: (M,) texts to search.
        gold: (N,) int64, index of the correct target of each query.
        unit: (N,) int64, bootstrap unit of each query: a document, or a run of one.
        own: (N,) int64, index of the target that equals the query and is excluded; -1 if there is none.
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
    """Return 1 / rank of each query's answer by cosine: (N,), in (0, 1].

    Targets with the same cosine as the answer share their mean rank.

    Args:
        encode: Maps texts to vectors (n, D); may cache vectors, since equal texts must get equal vectors.
        probe: The queries and their answers.

    Raises:
        EvaluationError: A query is its own answer.
    """
    if len(same := np.flatnonzero(probe.own == probe.gold)):
        raise EvaluationError(
            f"probe {probe.name}: {len(same)} of {len(probe)} queries are their own answers (first: "
            f"{probe.queries[same[0]]!r}), expected none. Remove such pairs."
        )
    queries_ND, targets_MD = (unit_vectors(encode(texts)) for texts in (probe.queries, probe.targets))
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
