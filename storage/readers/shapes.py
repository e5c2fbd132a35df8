"""The shapes in which sentences come: which columns hold text and which holds the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storage.errors import SourceError
from storage.readers.columns import Columns

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


def detect(origin: str, found: Sequence[str]) -> Shape:
    """The first known shape of which all columns are there; a single column is text whatever its name.

    Raises:
        SourceError: no shape fits.
    """
    for shape in SHAPES:
        if set(shape.columns.names) <= set(found):
            return shape
    if len(found) == 1:
        return Shape((found[0],))
    known = "; ".join(", ".join(shape.columns.names) for shape in SHAPES)
    raise SourceError(
        f"{origin} has the columns {', '.join(map(repr, found))}, none of the known sets ({known}); name the columns "
        "that hold text in the source's `columns`"
    )
