"""Exact nearest neighbours by cosine, computed in blocks, so that only one block of products is in memory.

Shapes: Q queries, N targets, D width, K neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

ROWS: Final = 1024  # queries per block
COLUMNS: Final = 1 << 16  # targets per block: at most 256 MB of products


def nearest(
    queries_QD: NDArray[np.float32], targets_ND: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the k nearest targets of each query: cosines (Q, K), descending, and rows (Q, K); K = min(k, N).

    Args:
        queries_QD: Unit vectors.
        targets_ND: Unit vectors.
        k: Number of neighbours, at least 1.
    """
    k = min(k, len(targets_ND))
    if len(queries_QD) == 0:
        return np.empty((0, k), dtype=np.float32), np.empty((0, k), dtype=np.int64)
    blocks = [_best(queries_QD[first : first + ROWS], targets_ND, k) for first in range(0, len(queries_QD), ROWS)]
    scores_QK, rows_QK = (torch.cat(parts) for parts in zip(*blocks, strict=True))
    return scores_QK.numpy(), rows_QK.numpy()


def _best(queries_QD: NDArray[np.float32], targets_ND: NDArray[np.float32], k: int) -> tuple[torch.Tensor, ...]:
    queries = torch.from_numpy(queries_QD)
    scores, rows = torch.empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.int64)
    for first in range(0, len(targets_ND), COLUMNS):
        block = torch.from_numpy(targets_ND[first : first + COLUMNS])
        cosines, columns = (queries @ block.T).topk(min(k, len(block)), dim=1)
        scores, order = torch.cat([scores, cosines], dim=1).topk(min(k, scores.shape[1] + cosines.shape[1]), dim=1)
        rows = torch.cat([rows, columns + first], dim=1).gather(1, order)
    return scores, rows


def nearest_pairs(
    vectors_ND: NDArray[np.float32], count: int, above: float = -1.0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the pairs of different rows with the highest cosines: (P,), descending, and rows (P, 2), the lower first.

    Args:
        vectors_ND: Unit vectors.
        count: Largest number of pairs.
        above: Lower bound of the cosines, exclusive.
    """
    scores, rows = torch.empty(0), torch.empty(0, 2, dtype=torch.int64)
    for cosines, pairs in _blocks_of_pairs(torch.from_numpy(vectors_ND)):
        floor = max(above, float(scores[-1])) if len(scores) == count else above
        better = cosines > floor
        scores, order = torch.cat([scores, cosines[better]]).sort(descending=True, stable=True)
        rows = torch.cat([rows, pairs[better]])[order][:count]
        scores = scores[:count]
    return scores.numpy(), rows.numpy()


def _blocks_of_pairs(vectors_ND: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield each pair once, in blocks: cosines (P,) and rows (P, 2)."""
    for first in range(0, len(vectors_ND), ROWS):
        block = vectors_ND[first : first + ROWS]
        for second in range(first, len(vectors_ND), ROWS):
            products = block @ vectors_ND[second : second + ROWS].T
            rows, columns = torch.triu_indices(len(block), products.shape[1], offset=1 if second == first else -ROWS)
            yield products[rows, columns], torch.stack([rows + first, columns + second], dim=1)
