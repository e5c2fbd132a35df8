"""Choose texts to label: spread over the text, and unlike each other.

Shapes: N texts, D width, K chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize

if TYPE_CHECKING:
    from numpy.typing import NDArray


def spread_rows(vectors_ND: NDArray[np.float32], count: int, seed: int) -> NDArray[np.int64]:
    """Return K rows, one for each cluster of k-means by cosine: the row nearest to its centre that is not yet chosen.

    With few labels, a classifier learns more from rows that represent clusters than from random rows (Yuan, Lin and
    Boyd-Graber, 2020, "Cold-start active learning through self-supervised language modeling").

    Args:
        vectors_ND: Vectors of the texts.
        count: K; all rows if there are not more.
        seed: Seed of the initial centres.

    Returns:
        The rows in a random order by the seed, so that the first rows are spread too.
    """
    generator = np.random.default_rng(seed)
    if len(vectors_ND) <= count:
        return generator.permutation(len(vectors_ND))
    units_ND = normalize(vectors_ND)
    means = MiniBatchKMeans(count, random_state=seed, n_init=1, batch_size=4096).fit(units_ND)
    distances_KN = -(means.cluster_centers_ @ units_ND.T)
    chosen: dict[int, None] = {}
    for order in np.argsort(distances_KN, axis=1, kind="stable"):
        chosen[next(int(row) for row in order if int(row) not in chosen)] = None
    return generator.permutation(np.array([*chosen], dtype=np.int64))
