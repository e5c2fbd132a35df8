"""Views without some of a sentence's words: crops, which are contiguous spans, and random deletions.

Two crops of a text share some content and need no translator. Training on them gains more than dropout does
(González-Márquez et al., 2025, arXiv 2508.03453, who cut spans of sentences out of long texts; here spans of words).

Deletions are the noise of TSDAE's inputs (Wang et al., 2021, section 3). Their words are the tokens of nltk's
`NLTKWordTokenizer`, so punctuation marks and parts of contractions are words too. nltk's `word_tokenize` calls it for
each sentence, after a sentence splitter that would need a download; our texts are single sentences.
`TreebankWordDetokenizer` joins the remaining words. Both are as in sentence-transformers.
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.views.config import CropView, DeletedView

MIN_WORDS: Final = 2
"""Least number of words in a crop; a text with no more words is unchanged."""

# Chinese and Japanese have no spaces between words, so each character counts as a word. So does each letter of Thai,
# Lao, Burmese and Khmer, with its signs above, below and after it, and with a vowel that is written before it.
_UNSPACED: Final = "\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_JOINED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_BEFORE: Final = "\u0e40-\u0e44\u0ec0-\u0ec4"
_SIGNS: Final = (
    "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u1062-\u1064\u1067-\u106d"
    "\u1071-\u1074\u1082-\u108d\u17b4-\u17d3\u17dd"
)
_SYLLABLE: Final = rf"[{_BEFORE}]?(?:[{_JOINED}](?:[\u1039\u17d2][{_JOINED}]|[{_SIGNS}])*)"
_WORDS: Final = re.compile(rf"[{_UNSPACED}]|{_SYLLABLE}|[^\s{_UNSPACED}{_JOINED}]+")


def crop_words(texts: Sequence[str], seeds: Sequence[int], view: CropView, number: int) -> list[str]:
    """Return a span of each text's words, with spaces and marks between them unchanged.

    Args:
        texts: Sentences.
        seeds: Seed of each sentence, which alone decides its crops.
        view: Settings with the share of words.
        number: Number of the crop, from 1; a crop does not depend on how many there are.
    """
    return [_cropped(text, Random(seed), view, number) for text, seed in zip(texts, seeds, strict=True)]


def _cropped(text: str, random: Random, view: CropView, number: int) -> str:
    spans = [match.span() for match in _WORDS.finditer(text)]
    # Python guarantees the same numbers in every version for Random.random() only.
    share, offset = [(random.random(), random.random()) for _ in range(number)][-1]
    drawn = round((view.least + share * (view.most - view.least)) * len(spans))
    count = max(drawn, MIN_WORDS)
    if count >= len(spans):
        return text
    first = int(offset * (len(spans) - count + 1))
    return text[spans[first][0] : spans[first + count - 1][1]]


def halves(text: str) -> tuple[str, str]:
    """Split a text into its first and second half of words; the second is empty if there are fewer than two words."""
    spans = [match.span() for match in _WORDS.finditer(text)]
    if len(spans) < MIN_WORDS:
        return text, ""
    middle = spans[len(spans) // 2][0]
    return text[:middle].rstrip(), text[middle:]


def delete_words(texts: Sequence[str], seeds: Sequence[int], view: DeletedView) -> list[str]:
    """Delete words of each text at random, but keep at least one; a text without words is unchanged.

    Args:
        texts: Sentences.
        seeds: Seed of each sentence, which alone decides which words are deleted.
        view: Settings with the probability of deletion.
    """
    from nltk.tokenize import NLTKWordTokenizer  # slow to import
    from nltk.tokenize.treebank import TreebankWordDetokenizer

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
