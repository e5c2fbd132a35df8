"""The existing path for which a wrong one may be a slip."""

from __future__ import annotations

import difflib
from pathlib import Path

_MOST = 10_000  # entries of a folder that are looked at
_CUTOFF = 0.7  # of `difflib`; a name of the same suffix alone has 0.5


def perhaps_path(path: str) -> str:
    """Return ` (did you mean 'letters/own.txt'?)` for a local path that does not exist, or "" if no name is near.

    Args:
        path: a path of which a folder or the last name is wrong.
    """
    if "://" in path:
        return ""
    wanted = Path(path).expanduser()
    try:
        missing = next((part for part in (*reversed(wanted.parents), wanted) if not part.exists()), None)
        if missing is None:
            return ""
        names = [entry.name for _, entry in zip(range(_MOST), missing.parent.iterdir(), strict=False)]
    except (OSError, ValueError):  # a name that no disk takes, a folder that may not be read
        return ""
    near = difflib.get_close_matches(missing.name, names, n=1, cutoff=_CUTOFF)
    found = [missing.parent / name / wanted.relative_to(missing) for name in near]
    return "".join(f" (did you mean {str(place)!r}?)" for place in found if place.exists())
