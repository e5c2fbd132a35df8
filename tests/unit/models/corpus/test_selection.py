"""Texts to label are spread over clusters."""

import numpy as np
import pytest

from bsl.models.corpus.selection import spread_rows


def clusters(sizes, seed=0):
    """Return vectors near one direction for each size, and the cluster of each vector."""
    own = np.repeat(np.arange(len(sizes)), sizes)
    vectors = np.eye(16)[own] + np.random.default_rng(seed).normal(0, 0.02, (len(own), 16))
    return vectors.astype(np.float32), own


def test_rare_clusters_are_chosen_which_a_random_sample_misses():
    vectors, own = clusters([400, 400, 10, 10])
    assert {*own[spread_rows(vectors, 8, 0)]} == {0, 1, 2, 3}


@pytest.mark.parametrize("count", [1, 7, 50, 199, 200, 500])
def test_rows_are_distinct_and_as_many_as_there_are(count):
    vectors, _ = clusters([120, 80])
    rows = spread_rows(vectors, count, 3)
    assert len({*rows.tolist()}) == len(rows) == min(count, 200)
    equal = np.repeat(np.eye(4, dtype=np.float32), 10, axis=0)
    assert len({*spread_rows(equal, count, 0).tolist()}) == min(count, 40)


def test_choice_depends_on_the_seed_only():
    vectors, _ = clusters([120, 80])
    assert spread_rows(vectors, 20, 1).tolist() == spread_rows(vectors, 20, 1).tolist()
    assert spread_rows(vectors, 20, 1).tolist() != spread_rows(vectors, 20, 2).tolist()
