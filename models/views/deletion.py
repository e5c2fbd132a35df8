"""Delete words at random, the noise of TSDAE's inputs (Wang et al., 2021, section 3).

Words are the tokens of nltk's `NLTKWordTokenizer`, so punctuation marks and parts of contractions are words too. nltk's
`word_tokenize` calls it for each sentence, after a sentence splitter that would need a download; our texts are single
sentences. `TreebankWordDetokenizer` joins the remaining words. Both are as in sentence-transformers.
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
    """Delete words of each text at random, but keep at least one; a text without words is unchanged.

    Args:
        texts: Sentences.
        seeds: Seed of each sentence, which alone decides which words are deleted.
        view: Settings with the probability of deletion.
    """
    split, join = NLTKWordTokenizer(), TreebankWordDetokenizer()

    def damaged(text: str, random: Random) -> str:
        words = split.tokenize(text)
        # Python guarantees the same numbers in every version for Random.random().
        drawn = [random.random() for _ in words]
        remaining = [word for word, draw in zip(words, drawn, strict=True) if draw >= view.share]
        if not remaining and words:
            remaining = [words[drawn.index(max(drawn))]]
        joined: str = join.detokenize(remaining)
        return joined or text

    return [damaged(text, Random(seed)) for text, seed in zip(texts, seeds, strict=True)]
