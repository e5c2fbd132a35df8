"""Which pairs of a corpus are most like the sentences that will be translated (Moore and Lewis 2010, with unigrams)."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\w+")


def closeness(texts: Sequence[str], domain: Iterable[str], general: Iterable[str]) -> np.ndarray:
    """How much likelier each text is in one domain than in general.

    Args:
        texts: Sentences to judge.
        domain: Sentences of the domain.
        general: Sentences of the corpus at large.

    Returns:
        (N,) mean over words of log p(word | domain) − log p(word | general), add-one smoothed; higher is closer.
    """
    one, other = _frequencies(domain), _frequencies(general)
    offset = math.log((other.total() + len(other) + 1) / (one.total() + len(one) + 1))
    ratios = {word: math.log((one[word] + 1) / (other[word] + 1)) + offset for word in {*one, *other}}
    return np.array([_mean([ratios.get(word, offset) for word in _words(text)]) for text in texts])


def nearest(scores: np.ndarray, share: float) -> np.ndarray:
    """Mask of the `share` of scores that are highest, ties included."""
    mask: np.ndarray = scores >= np.quantile(scores, 1.0 - share)
    return mask


def _frequencies(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
