"""Unigram TF-IDF, the first row of the paper's tables 1 and 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def tfidf_scores(corpus: Sequence[str], texts_1: Sequence[str], texts_2: Sequence[str]) -> NDArray[np.float64]:
    """Cosine of the TF-IDF vectors of each pair: (n,), in [0, 1].

    Document frequencies come from `corpus`, so the baseline knows what the trained encoder knows: the sentences, no
    labels. Words that the corpus lacks count nothing; a pair without any known word scores 0.

    Args:
        corpus: Sentences to fit on, e.g. the training corpus.
        texts_1: First sentence of each pair.
        texts_2: Second sentence of each pair.

    Raises:
        EvaluationError: Unequal numbers of texts, or a corpus without a single word.
    """
    if len(texts_1) != len(texts_2):
        raise EvaluationError(
            f"{len(texts_1)} first and {len(texts_2)} second sentences, expected as many; check the pairs"
        )
    # Every word counts, one-letter words too ("I", "a"): scikit-learn's default pattern would drop them.
    vectorizer = TfidfVectorizer(lowercase=True, token_pattern=r"(?u)\b\w+\b", sublinear_tf=False, norm="l2")
    try:
        vectorizer.fit(corpus)
    except ValueError as error:
        raise EvaluationError(
            f"TF-IDF cannot be fitted on {len(corpus)} texts ({error}); expected sentences with words"
        ) from error
    a, b = vectorizer.transform(texts_1), vectorizer.transform(texts_2)
    return np.clip(np.asarray(a.multiply(b).sum(axis=1), dtype=np.float64).ravel(), 0.0, 1.0)
