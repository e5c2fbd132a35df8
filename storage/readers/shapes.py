"""The shapes in which sentences come: which columns hold text and which holds the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storage.errors import SourceError
from storage.readers.columns import NAME_COLUMNS, Columns

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Shape:
    """A known set of columns.

    Attributes:
        texts: columns that hold sentences.
        label: column with an NLI label, where there is one.
    """

    texts: tuple[str, ...]
    label: str | None = None

    @property
    def columns(self) -> Columns:
        """What to read of such a source."""
        return Columns(self.texts, (self.label,) if self.label else ())


SHAPES: Final = (
    Shape(("sentence1", "sentence2"), "gold_label"),  # SNLI and MultiNLI as distributed
    Shape(("premise", "hypothesis"), "label"),  # the Hub's copies, all-nli/pair-class
    Shape(("premise", "entailment", "contradiction")),  # triplets of the mirror; their `neutral` is not always known
    Shape(("anchor", "positive", "negative")),  # all-nli/triplet
    Shape(("anchor", "positive")),  # all-nli/pair
    Shape(("sentence1", "sentence2")),  # STS sets
    Shape(("sentence_A", "sentence_B")),  # SICK as distributed
    Shape(("text",)),
    Shape(("sentence",)),
)


def known_shape(found: Sequence[str]) -> Shape | None:
    """The first known shape of which all columns are there, in its spelling or else in any capitals.

    Its columns are called as they were found.
    """
    for spelt in (str, str.lower):
        held = {spelt(name): name for name in reversed(found)}
        for shape in SHAPES:
            if {spelt(name) for name in shape.columns.names} <= held.keys():
                texts = tuple(held[spelt(text)] for text in shape.texts)
                return Shape(texts, shape.label and held[spelt(shape.label)])
    return None


def no_shape(origin: str, found: Sequence[str]) -> SourceError:
    """What to say of a source whose columns of text nobody named and nobody knows."""
    known = "; ".join(", ".join(shape.columns.names) for shape in SHAPES)
    return SourceError(
        f"{origin} has the columns {', '.join(map(repr, found))}, none of the known sets ({known}), and not one alone "
        f"that holds text; name the columns that hold text {NAME_COLUMNS}"
    )
