"""Sentences for pre-training out of licensed collections, free of evaluation texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SENTENCE_END = re.compile(r"""(?<=[.!?])["'”’)]*\s+(?=["'“‘(]?[A-Z0-9])""")
FIELD = re.compile(r"^[A-Z][A-Za-z _]{1,24}\d*: ")
WORDS = range(4, 61)


def is_sentence(text: str) -> bool:
    """Whether a text has 4 to 60 words: enough context to predict from, and no run-on."""
    return len(text.split()) in WORDS


def sentences_of(text: str) -> list[str]:
    """Sentences of a passage: split at line ends after field prefixes («Fact: ») and at sentence ends."""
    found: list[str] = []
    for line in text.splitlines():
        stripped = FIELD.sub("", line.strip())
        found.extend(part.strip() for part in SENTENCE_END.split(stripped) if part)
    return [s for s in found if is_sentence(s)]


def prose_sentences(text: str) -> list[str]:
    """Sentences of a book: paragraphs are joined across line ends first; headings in capitals fall away."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        joined = " ".join(paragraph.split())
        found.extend(part.strip() for part in SENTENCE_END.split(joined) if part and not part.isupper())
    return [s for s in found if is_sentence(s)]


def wiki_sentences(lines: Iterable[str]) -> list[str]:
    """Sentences of WikiText lines, its ` @-@ ` marks undone; headings and sentences with `<unk>` fall away."""
    found: list[str] = []
    for line in lines:
        if not line.strip().startswith("="):
            plain = re.sub(r" @(.)@ ", r"\1", line.strip())
            found.extend(s for s in re.split(r"(?<= [.!?]) +", plain) if "<unk>" not in s)
    return [s for s in found if is_sentence(s)]


def fingerprint(sentence: str) -> str:
    """Letters and digits only, lower-cased: equal for two copies that differ in case, spaces or punctuation."""
    return "".join(c for c in sentence.lower() if c.isalnum())


def training_sentences(
    groups: Sequence[Sequence[str]], limits: Sequence[int], forbidden: Iterable[str], seed: int
) -> list[str]:
    """Unique sentences of all groups, at most `limits[i]` of group i, none that `forbidden` holds, shuffled.

    Args:
        groups: Sentences by collection.
        limits: Most sentences of each collection, drawn at random.
        forbidden: Evaluation sentences, compared by `fingerprint`.
        seed: Decides the draw and the order.

    Returns:
        The training sentences.
    """
    generator = np.random.default_rng(seed)
    seen = {fingerprint(sentence) for sentence in forbidden}
    chosen: list[str] = []
    for group, limit in zip(groups, limits, strict=True):
        taken = 0
        for index in generator.permutation(len(group)):
            mark = fingerprint(group[index])
            if taken < limit and mark and mark not in seen:
                seen.add(mark)
                chosen.append(group[index])
                taken += 1
    return [chosen[i] for i in generator.permutation(len(chosen))]
