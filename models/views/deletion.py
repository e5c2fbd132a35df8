"""Sentences with words left out: what TSDAE writes whole again (Wang et al., 2021, section 3).

Words are those of nltk's `NLTKWordTokenizer` (punctuation marks and the parts of contractions are words), which is what
its `word_tokenize` calls for each sentence; a sentence of the corpus is one, so no sentence splitter is asked, which
would need a download. What is left is joined by `TreebankWordDetokenizer`. Both as sentence-transformers' noise.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from nltk.tokenize import NLTKWordTokenizer
from nltk.tokenize.treebank import TreebankWordDetokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.views.config import DeletedView


def delete_words(texts: Sequence[str], seeds: Sequence[int], view: DeletedView) -> list[str]:
    """Each text without some of its words, of which one stays at least; a text without words stays as it is.

    Args:
        texts: Sentences.
        seeds: A number of each sentence's own, which alone decides which words go.
        view: The probability of a word to go.
    """
    split, join = NLTKWordTokenizer(), TreebankWordDetokenizer()

    def damaged(text: str, random: Random) -> str:
        words = split.tokenize(text)
        # Random.random() is promised to give the same numbers in every version of Python.
        drawn = [random.random() for _ in words]
        kept = [word for word, draw in zip(words, drawn, strict=True) if draw >= view.share]
        if not kept and words:
            kept = [words[drawn.index(max(drawn))]]
        joined: str = join.detokenize(kept)
        return joined or text

    return [damaged(text, Random(seed)) for text, seed in zip(texts, seeds, strict=True)]
