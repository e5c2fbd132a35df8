"""Unigram TF-IDF, the first row of the paper's tables 1 and 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence


def tfidf_vectors(corpus: Sequence[str], texts: Sequence[str]) -> csr_array:
    """TF-IDF vectors of length 1: (number of texts, words of the corpus), float64.

    Document frequencies come from `corpus`, so the baseline knows what the trained encoder knows: the sentences, no
    labels. Words that the corpus lacks count nothing; a text without any known word is the zero vector.

    Args:
        corpus: Sentences to fit on, e.g. the training corpus.
        texts: What to embed.

    Raises:
        EvaluationError: The corpus has not a single word.
    """
    # Every word counts, one-letter words too ("I", "a"): scikit-learn's default pattern would drop them.
    vectorizer = TfidfVectorizer(lowercase=True, token_pattern=r"(?u)\b\w+\b", sublinear_tf=False, norm="l2")
    try:
        vectorizer.fit(corpus)
    except ValueError as error:
        raise EvaluationError(
            f"TF-IDF cannot be fitted on {len(corpus)} texts ({error}); expected sentences with words"
        ) from error
    return csr_array(vectorizer.transform(texts))
