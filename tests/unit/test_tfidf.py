"""TF-IDF cosine by hand."""

import math

import numpy as np
import pytest

from models.baselines.tfidf import tfidf_scores
from models.errors import EvaluationError

CORPUS = ["a dog runs", "a cat sleeps", "a dog sleeps"]


def idf(documents: int) -> float:
    return math.log((1 + len(CORPUS)) / (1 + documents)) + 1  # scikit-learn's smoothed idf


def test_pairs_by_hand():
    dog, runs, a, cat = idf(2), idf(1), idf(3), idf(1)
    expected = dog * dog / (math.hypot(dog, runs) * math.hypot(dog, cat))
    found = tfidf_scores(CORPUS, ["Dog runs", "a a", "dog", "zebra"], ["cat dog", "A", "cat", "zebra"])
    assert a > 0
    np.testing.assert_allclose(found, [expected, 1, 0, 0], atol=1e-12)


def test_what_cannot_be_fitted_or_paired_is_refused():
    with pytest.raises(EvaluationError, match="2 first and 1 second"):
        tfidf_scores(CORPUS, ["a", "b"], ["a"])
    with pytest.raises(EvaluationError, match="cannot be fitted on 1 texts"):
        tfidf_scores(["!!"], ["a"], ["a"])
