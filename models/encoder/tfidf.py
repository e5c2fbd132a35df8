"""Unigram TF-IDF, the first row of the paper's tables 1 and 10.

Shapes: W words of the corpus.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from bsl.models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# Unlike scikit-learn's default pattern, this one includes one-letter words ("I", "a").
_SETTINGS: Final = {"lowercase": True, "token_pattern": r"(?u)\b\w+\b", "sublinear_tf": False, "norm": "l2"}


class TfIdf:
    """Unigram TF-IDF, fitted on batches of texts.

    Document frequencies come from the training corpus, so the baseline sees the encoder's training data: sentences, no
    labels. Fitting needs memory for one count per word, not for a matrix of the corpus.

    Args:
        corpus: Batches of sentences to fit on.

    Attributes:
        width: Number of distinct words of the corpus.

    Raises:
        EvaluationError: The corpus has no word.
    """

    def __init__(self, corpus: Iterable[Sequence[str]]) -> None:
        words_of = TfidfVectorizer(**_SETTINGS).build_analyzer()
        documents: Counter[str] = Counter()
        texts = 0
        for batch in corpus:
            texts += len(batch)
            for text in batch:
                documents.update(set(words_of(text)))
        if not documents:
            raise EvaluationError(f"TF-IDF: none of {texts} texts contains a word. Give sentences.")
        vocabulary = sorted(documents)
        counts_W = np.array([documents[word] for word in vocabulary], dtype=np.float64)
        self.width = len(vocabulary)
        self._vectorizer = TfidfVectorizer(**_SETTINGS, vocabulary=vocabulary)
        # Smoothed as in scikit-learn's fit: as if one more text contained every word.
        self._vectorizer.idf_ = np.log((texts + 1) / (counts_W + 1)) + 1.0

    def vectors(self, texts: Sequence[str]) -> csr_array:
        """Return TF-IDF vectors of length 1: (number of texts, words of the corpus), float64.

        Words that are not in the corpus are ignored; a text without any known word is the zero vector.
        """
        return csr_array(self._vectorizer.transform(texts))
