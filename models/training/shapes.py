"""Choose a few shapes to pad batches to, with the least padding.

The order of batches is known before the first step, so shapes are chosen from real batches. A batch costs the tokens of
its row; the length of its longest sentence affects only the padding in attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from models.encoder.shaped import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.training.batches import BatchOrder
    from models.training.token_cache import TokenCache

MAX_SHAPES: Final = 6  # shapes: each is captured once and needs the memory of a graph
MULTIPLE: Final = 8  # tensor cores need token counts in multiples of 8
SAMPLED: Final = 1 << 16  # pairs of the first steps to choose from; a later batch that fits no shape is packed


def choose_shapes(data: TokenCache, order: BatchOrder, steps: int, pairs: int) -> tuple[Shape, ...]:
    """Return at most `MAX_SHAPES` shapes for the first steps of a run, smallest first.

    Args:
        data: Tokens of each pair.
        order: Rows of each step.
        steps: Number of steps of the run.
        pairs: Batch size; smaller batches get no shape.
    """
    sampled = min(steps, max(MAX_SHAPES, SAMPLED // pairs))
    batches = (order.rows(step) for step in range(1, sampled + 1))
    lengths = [data.view_lengths(rows) for rows in batches if len(rows) == pairs]
    if not lengths:
        return ()
    views_S2 = np.array([lengths_B2.sum(axis=0) for lengths_B2 in lengths])
    longest_S = np.array([lengths_B2.max() for lengths_B2 in lengths])
    totals_S = views_S2.sum(axis=1)
    sizes = least_waste(totals_S, MAX_SHAPES, MULTIPLE)
    class_S = np.searchsorted(sizes, totals_S)
    shapes = []
    for number, size in enumerate(sizes):
        of_class = class_S == number
        first, second = (int(view) for view in _raised(views_S2[of_class].max(axis=0), MULTIPLE))
        shapes.append(Shape(size, (first, second), int(_raised(longest_S[of_class].max(), MULTIPLE))))
    return tuple(shapes)


def least_waste(lengths: NDArray[np.int64], most: int, multiple: int) -> tuple[int, ...]:
    """Return at most `most` sizes, ascending, that minimise the total padding of the lengths.

    The result is exact, by dynamic programming over the distinct lengths.

    Args:
        lengths: At least one, each above 0.
        most: Largest number of sizes.
        multiple: Every size is a multiple of this.
    """
    sizes_M, counts_M = np.unique(_raised(lengths, multiple), return_counts=True)
    below = np.concatenate([[0], np.cumsum(counts_M)])
    # (i, j): tokens if sizes i to j − 1 are all padded to the largest of them.
    covered = np.full((len(sizes_M), len(sizes_M) + 1), np.inf)
    for first in range(len(sizes_M)):
        covered[first, first + 1 :] = sizes_M[first:] * (below[first + 1 :] - below[first])
    best, starts = np.append(0.0, np.full(len(sizes_M), np.inf)), []
    for _ in range(min(most, len(sizes_M))):
        costs = best[:-1, None] + covered
        starts.append(costs.argmin(axis=0))
        best = costs.min(axis=0)
    chosen, end = [], len(sizes_M)
    for start in reversed(starts):
        chosen.append(int(sizes_M[end - 1]))
        end = int(start[end])
    return tuple(reversed(chosen))


def _raised(values: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Round each value up to a multiple."""
    return -(-values // multiple) * multiple
