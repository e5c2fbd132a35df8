"""Validate the file names of a manifest: relative, normalised, of bounded length; regular files, not links.

Everybody who can write to the store can write a manifest, so its names are untrusted until checked here.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST: Final = "manifest.json"
_MOST_BYTES: Final = 1024  # of a name; S3's maximum for a complete key
_MOST_BYTES_OF_PART: Final = 255  # maximum of common file systems
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")


def _inside(name: str) -> str:
    """Return the name unchanged; refuse one that leads out of its artifact's folder or that no file system accepts."""
    try:
        parts = [part.encode() for part in name.split("/")]
    except UnicodeEncodeError as error:
        raise ValueError("a file name is not Unicode text") from error
    if not is_inside(name) or any(len(part) > _MOST_BYTES_OF_PART for part in parts):
        raise ValueError(f"the file name {name[:80]!r} is not a short, normalised relative path")
    if len(name.encode()) > _MOST_BYTES or _FORBIDDEN.search(name):
        raise ValueError(f"the file name {name[:80]!r} is too long or contains control characters or backslashes")
    if name == MANIFEST:
        raise ValueError(f"a manifest cannot list {MANIFEST} itself")
    return name


def is_inside(name: str) -> bool:
    """Return whether a relative name, joined to a folder, is below that folder."""
    return all(part not in {"", ".", ".."} for part in name.split("/"))


FileName = Annotated[str, AfterValidator(_inside)]


def irregular(folder: Path, name: str) -> str | None:
    """Return the kind of a path that is not a regular file, such as a folder or a link; None for a regular file.

    Links are never regular, because an artifact's files must be in its own folder.

    Raises:
        FileNotFoundError, NotADirectoryError: the path does not exist.
        OSError: the file system cannot be read.
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
    """Return the file type of an `os.stat` mode in words."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFREG: "a file", stat.S_IFIFO: "a named pipe"}
    return kinds.get(stat.S_IFMT(mode), "a device or socket")
