"""Parallel sentence pairs with English: split off held-out pairs, and select pairs near a domain.

Closeness to a domain is that of Moore and Lewis (2010), with unigrams.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.pretraining.corpora import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\w+")


def split_pairs(
    pairs: dict[str, pl.DataFrame], held_out: int, seed: int
) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """Split off held-out pairs of every language that share no sentence with the training pairs.

    English sides are compared across all languages. Sentences are compared by letters and digits alone.

    Args:
        pairs: By language, frames with the columns `en` and `other`.
        held_out: Number of held-out pairs per language (at most a twelfth of its pairs), with unique English sides.
        seed: Seed of the draw.

    Returns:
        Training and held-out pairs by language, as given.
    """
    marked = {language: _mark(frame) for language, frame in sorted(pairs.items())}
    excluded: dict[str, pl.DataFrame] = {}
    for number, (language, frame) in enumerate(marked.items()):
        unique = frame.unique("en_mark", keep="first", maintain_order=True).unique("other_mark", maintain_order=True)
        order = np.random.default_rng([seed, number]).permutation(len(unique))
        excluded[language] = unique[order[: min(held_out, len(frame) // 12)]]
    english = pl.concat([frame["en_mark"] for frame in excluded.values()]).implode()
    train = {
        language: frame.filter(
            ~pl.col("en_mark").is_in(english), ~pl.col("other_mark").is_in(excluded[language]["other_mark"].implode())
        ).select("en", "other")
        for language, frame in marked.items()
    }
    return train, {language: frame.select("en", "other") for language, frame in excluded.items()}


def _mark(frame: pl.DataFrame) -> pl.DataFrame:
    marks = [pl.Series(f"{side}_mark", [fingerprint(text) for text in frame[side]]) for side in ("en", "other")]
    return frame.with_columns(marks).filter(pl.col("en_mark") != "", pl.col("other_mark") != "")


def closeness(texts: Sequence[str], domain: Iterable[str], general: Iterable[str]) -> np.ndarray:
    """Score how much more likely each text is in a domain than in a general corpus.

    Args:
        texts: Sentences to score.
        domain: Sentences of the domain.
        general: Sentences of the general corpus.

    Returns:
        (N,) mean over words of log p(word | domain) − log p(word | general), add-one smoothed; higher is closer.
    """
    one, other = _frequencies(domain), _frequencies(general)
    offset = math.log((other.total() + len(other) + 1) / (one.total() + len(one) + 1))
    ratios = {word: math.log((one[word] + 1) / (other[word] + 1)) + offset for word in {*one, *other}}
    return np.array([_mean([ratios.get(word, offset) for word in _words(text)]) for text in texts])


def nearest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return a mask of the highest `share` of scores, ties included."""
    mask: np.ndarray = scores >= np.quantile(scores, 1.0 - share)
    return mask


def _frequencies(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
