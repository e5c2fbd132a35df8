"""Clustering score of vectors: the V-measure of k-means clusters, as MTEB computes it.

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
    """Return the V-measure of k-means clusters against labels, in [0, 1]; one cluster per label.

    The V-measure is the harmonic mean of homogeneity and completeness. Mini-batch k-means, batches of 500, one
    k-means++ initialisation (MTEB's ClusteringEvaluator). Deviation: the initialisation is seeded; MTEB's is not.

    Raises:
        EvaluationError: There are fewer than two labels.
    """
    groups = len(set(labels))
    if groups < 2:
        raise EvaluationError(f"{len(labels)} texts with {groups} label, expected at least two labels. Remove the set.")
    if isinstance(vectors_ND, csr_array):
        indices = (
            vectors_ND.indices.astype(np.int32),
            vectors_ND.indptr.astype(np.int32),
        )  # k-means accepts only int32
        vectors_ND = csr_array((vectors_ND.data, *indices), shape=vectors_ND.shape)
    found = MiniBatchKMeans(groups, batch_size=BATCH, n_init=1, random_state=seed).fit(vectors_ND).labels_
    return float(v_measure_score(labels, found))
