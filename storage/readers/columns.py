"""Choose the columns to read: by name, or by the known shapes of NLI and STS sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.spelling import nearest_name
from bsl.storage.readers.read_report import NAME_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class Columns:
    """The columns to read, or a known combination of column names.

    Attributes:
        texts: string columns; empty where absent or null.
        others: other columns, null where absent, such as the label of an NLI pair or the score of a pair: as strings
            from text files, with their types from Parquet and Arrow.
        carried: columns to copy: as strings from text files, with their types from Parquet and Arrow.
    """

    texts: tuple[str, ...]
    others: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All column names, texts first."""
        return (*self.texts, *self.others, *self.carried)

    @property
    def label(self) -> str | None:
        """The column of labels or scores; None if there is none."""
        return self.others[0] if self.others else None


def require(path: str, found: Sequence[str], expected: Sequence[str], remedy: str = NAME_COLUMNS) -> None:
    """Check that a source at `path` has the expected columns; `remedy` says how to name others.

    Raises:
        SourceError: lists missing and existing columns, and suggests the nearest name for each.
    """
    missing = [name for name in expected if name not in found]
    if missing:
        raise SourceError(
            f"{path}: column {', '.join(map(repr, missing))} is missing; found {_listed(found)}, expected "
            f"{_listed(expected)}{_hint(missing, found)}. Name the right columns {remedy}."
        )


def _hint(missing: Sequence[str], found: Sequence[str]) -> str:
    nearest = {name: nearest_name(name, found, cutoff=0.5) for name in missing}
    hints = [f"{match!r} for {name!r}" for name, match in nearest.items() if match]
    return f" (did you mean {', '.join(hints)}?)" if hints else ""


def _listed(names: Sequence[str], shown: int = 20) -> str:
    more = f", … {len(names)} in all" if len(names) > shown else ""
    return ", ".join(map(repr, names[:shown])) + more if names else "none"


def named(found: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the columns with these names, in any case and as spelt in `found`, in the order of `names`."""
    spelt = {name.lower(): name for name in found}
    return (spelt[name] for name in names if name in spelt)


SHAPES: Final = (
    Columns(("sentence1", "sentence2"), ("gold_label",)),  # SNLI and MultiNLI as distributed
    Columns(("premise", "hypothesis"), ("label",)),  # the Hub's copies, all-nli/pair-class
    Columns(("premise", "entailment", "contradiction")),  # triplets on a mirror; `neutral` is not always known
    Columns(("anchor", "positive", "negative")),  # all-nli/triplet
    Columns(("anchor", "positive")),  # all-nli/pair
    Columns(("sentence1", "sentence2")),  # STS sets
    Columns(("sentence_A", "sentence_B")),  # SICK as distributed
    Columns(("text",)),
    Columns(("sentence",)),
)
SCORED_SHAPES: Final = (
    Columns(("sentence1", "sentence2"), ("score",)),
    Columns(("sentence_A", "sentence_B"), ("relatedness_score",)),  # SICK as distributed
)


def known_shape(found: Sequence[str], *, texts_only: bool = False) -> Columns | None:
    """Return the first known shape whose columns all exist, in the same case or else in any case, as spelt in `found`.

    With `texts_only`, the other columns of a shape may be missing and are excluded from the result.
    """
    for spelling in (str, str.lower):
        names = {spelling(name): name for name in reversed(found)}
        for shape in SHAPES:
            others = () if texts_only else shape.others
            if {spelling(name) for name in (*shape.texts, *others)} <= names.keys():
                return Columns(*(tuple(names[spelling(name)] for name in part) for part in (shape.texts, others)))
    return None
