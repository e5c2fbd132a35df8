"""Runs of a sentence's words: views that need no model and no language.

Words are what stands between blanks; of a text with fewer than `WORDS` of them, as without blanks, characters.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.augmentation.rewritings import CropView

WORDS: Final = 4


def crop_words(texts: Sequence[str], seeds: Sequence[int], view: CropView) -> list[str]:
    """A run of each text's words, of a share drawn between the view's bounds, beginning anywhere.

    Args:
        texts: Sentences.
        seeds: A number of each sentence's own, which alone decides the run.
        view: The bounds.
    """

    def cropped(text: str, random: Random) -> str:
        words, joint = _pieces(text)
        # Random.random() is promised to give the same numbers in every version of Python.
        size = max(1, round(len(words) * (view.least + (view.most - view.least) * random.random())))
        start = int(random.random() * (len(words) - size + 1))
        return joint.join(words[start : start + size]).strip() or text

    return [cropped(text, Random(seed)) for text, seed in zip(texts, seeds, strict=True)]


def halves(text: str) -> tuple[str, str]:
    """The first and the second half of a text's words, which share none."""
    words, joint = _pieces(text)
    middle = len(words) // 2
    return joint.join(words[:middle]).strip(), joint.join(words[middle:]).strip()


def _pieces(text: str) -> tuple[list[str], str]:
    words = text.split()
    return (words, " ") if len(words) >= WORDS else (list(text), "")
