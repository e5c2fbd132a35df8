"""What a translator is, whichever engine runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.runtime.progress import OnProgress


@dataclass(frozen=True)
class Translation:
    """One sentence in the target language."""

    text: str
    """The translation; the source itself where there was nothing to translate."""

    n_tokens: int
    """Target pieces computed, end mark left out; 0 where the source was passed through."""

    score: float | None
    """Mean natural log-probability per piece, at most 0; None where the search does not tell."""


@dataclass(frozen=True)
class Decoded:
    """What became of a batch of source sentences, in their order."""

    pieces: list[list[int]]
    """Target pieces per sentence, end mark and padding left out."""

    scores: list[float | None]
    """Mean natural log-probability per piece, end mark counted; at most 0. None where the search does not tell."""


class Translator(Protocol):
    """Sentences in, translations out, in the order given."""

    def translate(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> list[Translation]:
        """Translate every text; the result depends on the list alone, so an equal list gives equal bytes."""
        ...


def is_translatable(text: str) -> bool:
    """Whether the text holds a letter or digit; blanks and bare punctuation mean the same in every language."""
    return any(character.isalnum() for character in text)
