"""Which pieces a translator may write: those that it wrote for a sample."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from models.translation.vocabulary import Vocabulary


def most_frequent(
    vocabulary: Vocabulary, translations: Iterable[Sequence[str]], pieces: int
) -> tuple[list[tuple[str, int]], int]:
    """The pieces that spell a translator's translations, the most frequent first, equal counts by name.

    Args:
        vocabulary: The translator's.
        translations: What it wrote, in parts of any size.
        pieces: Most pieces to keep.

    Returns:
        Pieces with their counts, and how many pieces there were.
    """
    counts: Counter[str] = Counter()
    for texts in translations:
        for row in vocabulary.target_pieces(texts):
            counts.update(row)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ordered[:pieces], len(ordered)
