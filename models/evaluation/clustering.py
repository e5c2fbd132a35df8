"""How well groups of texts show in their vectors: k-means as MTEB runs it, and the V-measure of what it finds.

Shapes: N texts, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import v_measure_score

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.evaluation.probe.problem import Features

BATCH: Final = 500


def v_measure(vectors_ND: Features, labels: Sequence[str], seed: int) -> float:
    """Harmonic mean of homogeneity and completeness of as many clusters as there are labels, in [0, 1].

    Mini-batch k-means, batches of 500, one start by k-means++ (MTEB's ClusteringEvaluator). Deviation: the start has a
    seed, which MTEB leaves to chance.

    Raises:
        EvaluationError: There are fewer than two labels.
    """
    groups = len(set(labels))
    if groups < 2:
        raise EvaluationError(f"{len(labels)} texts of {groups} group, expected two groups at least; leave the set out")
    if isinstance(vectors_ND, csr_array):
        places = (vectors_ND.indices.astype(np.int32), vectors_ND.indptr.astype(np.int32))  # k-means takes no others
        vectors_ND = csr_array((vectors_ND.data, *places), shape=vectors_ND.shape)
    found = MiniBatchKMeans(groups, batch_size=BATCH, n_init=1, random_state=seed).fit(vectors_ND).labels_
    return float(v_measure_score(labels, found))
