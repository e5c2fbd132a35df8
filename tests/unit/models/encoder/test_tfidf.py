"""TF-IDF cosine, computed by hand."""

import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from bsl.models.encoder.tfidf import TfIdf
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import sparse_cosines

CORPUS = ["a dog runs", "a cat sleeps", "a dog sleeps"]


def idf(documents):
    return math.log((1 + len(CORPUS)) / (1 + documents)) + 1  # scikit-learn's smoothed idf


def test_tfidf_cosines_match_hand_computed_values():
    dog, runs, a, cat = idf(2), idf(1), idf(3), idf(1)
    expected = dog * dog / (math.hypot(dog, runs) * math.hypot(dog, cat))
    vectors = TfIdf([CORPUS[:1], CORPUS[1:]]).vectors(
        ["Dog runs", "a a", "dog", "zebra", "cat dog", "A", "cat", "zebra"]
    )
    found = sparse_cosines(vectors[:4], vectors[4:])
    assert a > 0
    np.testing.assert_allclose(found, [expected, 1, 0, 0], atol=1e-12)


def test_corpus_without_words_is_rejected():
    with pytest.raises(EvaluationError, match="none of 1 texts contains a word"):
        TfIdf([["!!"]])


def test_chunked_fit_matches_scikit_learn_bit_for_bit():
    texts = [f"The {n % 13} dogs of Zoë run; a_b {n} times, naïve I am" for n in range(400)] + ["", "…", "l\u0301 x"]
    whole = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit(texts)
    lots = TfIdf([texts[:7], texts[7:300], [], texts[300:]])
    ours, theirs = lots.vectors(texts), whole.transform(texts)
    assert lots.width == len(whole.vocabulary_)
    assert ours.indices.tolist() == theirs.indices.tolist()
    assert ours.data.tobytes() == theirs.data.tobytes()
