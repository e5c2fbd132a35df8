"""Suggestions for misspelt names and paths."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST: Final = 10_000  # maximum number of a folder's entries to compare
_CUTOFF: Final = 0.7  # of `difflib`; names that share only a suffix score 0.5


def did_you_mean(name: str, known: Iterable[str], most: int = 1, prefix: str = "") -> str:
    """Return ` Did you mean 'tiny'?` with the known names closest to a misspelt one; empty if none is close."""
    nearest = [f"{prefix}{match}" for match in difflib.get_close_matches(name, list(known), n=most)]
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
    near = difflib.get_close_matches(missing.name, names, n=1, cutoff=_CUTOFF)
    found = [missing.parent / name / full_path.relative_to(missing) for name in near]
    return "".join(f" (did you mean {str(path)!r}?)" for path in found if path.exists())
