"""Suggestions for misspelt names and paths."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST: Final = 10_000  # maximum number of a folder's entries to compare
_CUTOFF: Final = 0.7  # of `difflib`; names that share only a suffix score 0.5


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name closest to a misspelt one; empty if none is close (`cutoff` as of `difflib`)."""
    return next(iter(_nearest(name, known, 1, cutoff)), "")


def did_you_mean(name: str, known: Iterable[str], most: int = 1, prefix: str = "") -> str:
    """Return ` Did you mean 'tiny'?` with the known names closest to a misspelt one; empty if none is close."""
    nearest = [f"{prefix}{match}" for match in _nearest(name, known, most)]
    return f" Did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""


def perhaps_path(address: str) -> str:
    """Return ` (did you mean 'letters/own.txt'?)` for a missing local path, or "" if no name is similar."""
    from bsl.storage.filesystem.urls import at_home  # pydantic, which no suggestion for a name needs

    if "://" in address:
        return ""
    full_path = Path(at_home(address))
    try:
        missing = next((part for part in (*reversed(full_path.parents), full_path) if not part.exists()), None)
        if missing is None:
            return ""
        names = [entry.name for _, entry in zip(range(_MOST), missing.parent.iterdir(), strict=False)]
    except (OSError, ValueError):  # an invalid file name, or an unreadable folder
        return ""
    if not (near := nearest_name(missing.name, names, _CUTOFF)):
        return ""
    path = missing.parent / near / full_path.relative_to(missing)
    return f" (did you mean {str(path)!r}?)" if path.exists() else ""


def _nearest(name: str, known: Iterable[str], most: int, cutoff: float = 0.6) -> list[str]:
    """Return the closest names in any case; of names that differ only in case, the first."""
    spelt: dict[str, str] = {}
    for one in known:
        spelt.setdefault(one.lower(), one)
    return [spelt[near] for near in difflib.get_close_matches(name.lower(), spelt, n=most, cutoff=cutoff)]
