"""Names and files that a manifest may list: relative, normalised, of bounded length; regular files, not links.

A manifest may come from anybody who can write to the store, so a name of it is a claim until it was checked here.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator

MANIFEST: Final = "manifest.json"
_MOST_BYTES: Final = 1024  # of a name; S3 takes as many of a whole key
_MOST_BYTES_OF_PART: Final = 255  # file systems take no more
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")


def _inside(name: str) -> str:
    """The name, if it can only lie inside its artifact's folder.

    Raises:
        ValueError: it cannot, or no file system takes it.
    """
    try:
        parts = [part.encode() for part in name.split("/")]
    except UnicodeEncodeError as error:
        raise ValueError("a file's name is not Unicode text") from error
    if not is_inside(name) or any(len(part) > _MOST_BYTES_OF_PART for part in parts):
        raise ValueError(f"the file name {name[:80]!r} is not relative, normalised and short")
    if len(name.encode()) > _MOST_BYTES or _FORBIDDEN.search(name):
        raise ValueError(f"the file name {name[:80]!r} is too long or contains control characters or backslashes")
    if name == MANIFEST:
        raise ValueError(f"a manifest cannot list {MANIFEST} itself")
    return name


def is_inside(name: str) -> bool:
    """Whether a relative name can only lie below the folder that it is joined to."""
    return all(part not in {"", ".", ".."} for part in name.split("/"))


FileName = Annotated[str, AfterValidator(_inside)]


def irregular(folder: Path, name: str) -> str | None:
    """What stands at a name in a local folder instead of a regular file, such as a folder or a link; else None.

    A link is none, wherever it points: what an artifact holds must lie in its folder.

    Raises:
        FileNotFoundError, NotADirectoryError: nothing stands there.
        OSError: the file system refuses to say.
    """
    *parents, last = name.split("/")
    for parent in parents:
        folder /= parent
        mode = os.lstat(folder).st_mode
        if not stat.S_ISDIR(mode):
            return f"below {kind_of(mode)}"
    mode = os.lstat(folder / last).st_mode
    return None if stat.S_ISREG(mode) else kind_of(mode)


def kind_of(mode: int) -> str:
    """What a mode of `os.stat` stands for, in words."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFREG: "a file", stat.S_IFIFO: "a named pipe"}
    return kinds.get(stat.S_IFMT(mode), "a device or socket")


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
