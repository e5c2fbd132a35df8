"""Crops: a run of a sentence's words, the rest left out at both ends.

Two crops of a text share some of what it says and no translator made them; as views they teach more than dropout does
(González-Márquez et al., 2025, arXiv 2508.03453, who cut runs of sentences out of long texts; here runs of words).
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.views.config import CropView

MIN_WORDS: Final = 2
"""Words that a crop keeps at least; a text with no more stays whole."""

# Chinese and Japanese put no spaces between words: each character is cut as a word is. So is each letter of Thai, Lao,
# Burmese and Khmer, with the signs above, below and behind it, and with what is written before it and spoken after.
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
    """A run of each text's words, spaces and marks between them as they were.

    Args:
        texts: Sentences.
        seeds: A number of each sentence's own, which alone decides its crops.
        view: The share of words.
        number: Which of a sentence's crops, from 1; more crops do not change the first.
    """
    return [_cropped(text, Random(seed), view, number) for text, seed in zip(texts, seeds, strict=True)]


def _cropped(text: str, random: Random, view: CropView, number: int) -> str:
    spans = [match.span() for match in _WORDS.finditer(text)]
    # Only Random.random() is promised to give the same numbers in every version of Python.
    share, place = [(random.random(), random.random()) for _ in range(number)][-1]
    wanted = round((view.least + share * (view.most - view.least)) * len(spans))
    kept = max(wanted, MIN_WORDS)
    if kept >= len(spans):
        return text
    first = int(place * (len(spans) - kept + 1))
    return text[spans[first][0] : spans[first + kept - 1][1]]


def halves(text: str) -> tuple[str, str]:
    """The first and the second half of a text's words, which share none; the latter is empty of a single word."""
    spans = [match.span() for match in _WORDS.finditer(text)]
    if len(spans) < MIN_WORDS:
        return text, ""
    middle = spans[len(spans) // 2][0]
    return text[:middle].rstrip(), text[middle:]
