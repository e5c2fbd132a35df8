"""TF-IDF vectors are those of scikit-learn, fitted in chunks."""

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from bsl.models.encoder.tfidf import TfIdf
from bsl.models.errors import EvaluationError


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
