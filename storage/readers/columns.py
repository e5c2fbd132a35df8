"""Which columns are wanted of a source, and how to say that they are not there."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence


NAME_COLUMNS: Final = "(`--columns`; in embed, search and pairs `--column`; in a recipe `ingest.sources[].columns`)"
"""The options that name the columns of text."""


@dataclass(frozen=True)
class Columns:
    """The columns to read.

    Attributes:
        texts: strings that every record must have; a record without is rejected.
        others: read as strings, null where absent (a label, a score).
    """

    texts: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, texts first."""
        return (*self.texts, *self.others)


def require(path: str, found: Sequence[str], expected: Sequence[str], remedy: str = NAME_COLUMNS) -> None:
    """Check that columns are there.

    Args:
        path: the source.
        found: its columns.
        expected: those that are wanted.
        remedy: how the caller names others.

    Raises:
        SourceError: with what is missing, what was found and the nearest name to each.
    """
    missing = [name for name in expected if name not in found]
    if missing:
        raise SourceError(
            f"{path}: column {', '.join(map(repr, missing))} is missing; found {_listed(found)}, expected "
            f"{_listed(expected)}{_hint(missing, found)}; name the right columns {remedy}"
        )


def _hint(missing: Sequence[str], found: Sequence[str]) -> str:
    nearest = {name: difflib.get_close_matches(name, found, n=1, cutoff=0.5) for name in missing}
    hints = [f"{match[0]!r} for {name!r}" for name, match in nearest.items() if match]
    return f" (did you mean {', '.join(hints)}?)" if hints else ""


def _listed(names: Sequence[str], shown: int = 20) -> str:
    more = f", … {len(names)} in all" if len(names) > shown else ""
    return ", ".join(map(repr, names[:shown])) + more if names else "none"
