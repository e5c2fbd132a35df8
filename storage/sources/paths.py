"""List the text files of a path, by one rule for all commands and recipes.

A folder means all readable files in it and below it. Names that begin with "." are skipped, as in shells: virtual
environments, version control, and the store that a run creates next to the text.
"""

from __future__ import annotations

import glob
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import fsspec

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.folders import files_below, is_hidden
from bsl.storage.filesystem.secrets import without_password
from bsl.storage.filesystem.spelling import perhaps_path
from bsl.storage.filesystem.urls import reachable
from bsl.storage.readers.blocks import require_file
from bsl.storage.readers.formats import SUFFIXES, is_readable

if TYPE_CHECKING:
    from collections.abc import Iterator


def listed(path: str) -> tuple[str, ...]:
    """Return the file at a path, or the readable files below a folder or matching a pattern, sorted by name.

    Hidden files and files in hidden folders (names that begin with ".") are skipped, unless the pattern has a
    hidden part.

    Args:
        path: a file, folder or pattern with `*` at any fsspec address.

    Raises:
        ValueError: an address contains a password.
        SourceError: the path cannot be reached; there are no files; a file is a pipe, device or socket; or a file name
            is not UTF-8.
    """
    if not path:
        raise SourceError("'' is an empty path, expected a file, folder or pattern. A dot is the current folder.")
    require_file(without_password(path))
    with reachable(path):
        return _listed(path)


def other_suffixes(path: str) -> Counter[str]:
    """Return the number of files that `listed` leaves out of a folder or pattern because of their format, by suffix.

    Raises:
        SourceError: as for `listed`.
    """
    with reachable(path):
        fs, root = fsspec.url_to_fs(path)
        names = () if fs.isfile(root) else _names(path, fs, root)
    return Counter(PurePosixPath(name).suffix or PurePosixPath(name).name for name in names if not is_readable(name))


def _listed(path: str) -> tuple[str, ...]:
    fs, root = fsspec.url_to_fs(path)
    if fs.isfile(root):
        _require_utf8(path)
        return (path,)
    if not fs.isdir(root) and "*" not in root:
        raise SourceError(f"{path}: no such file or folder{perhaps_path(path)}. Correct the path.")
    names = _names(path, fs, root)
    found = tuple(name for name in names if is_readable(name))
    for name in found:
        _require_utf8(name)
        require_file(name)
    if not found:
        unknown = f"{len(names)} files, none in a known format ({', '.join(SUFFIXES)})"
        has = "contains" if fs.isdir(root) else "matches"
        raise SourceError(f"{path} {has} {unknown if names else 'no files'}. Correct the path.")
    return tuple(str(fs.unstrip_protocol(name)) if "://" in path else name for name in found)


def _names(path: str, fs: fsspec.AbstractFileSystem, root: str) -> list[str]:
    """Return the files below a folder or matching a pattern, sorted, readable or not."""
    try:
        return sorted(files_below(fs, root.rstrip("/")) if fs.isdir(root) else _matches(fs, root))
    except OSError as error:
        raise SourceError(f"{path}: cannot be listed ({error}). Check its permissions, or name the files.") from error


def _matches(fs: fsspec.AbstractFileSystem, pattern: str) -> Iterator[str]:
    """Yield the files matching a pattern; unlike a shell, fsspec's `*` also matches hidden files."""
    folder = pattern.partition("*")[0].rpartition("/")[0]
    includes_hidden = is_hidden(pattern[len(folder) :].lstrip("/"))
    for found in fs.glob(_literal_folder(fs, pattern)):
        name = str(found)
        below = "/".join(name.split("/")[folder.count("/") + 1 :])
        if (includes_hidden or not is_hidden(below)) and fs.isfile(name):
            yield name


def _require_utf8(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise SourceError(f"{name!r}: its name is not UTF-8, so it cannot be recorded. Rename it.") from error


def _literal_folder(fs: fsspec.AbstractFileSystem, pattern: str) -> str:
    """Return the pattern with the folder before its first `*` escaped, if that folder exists: `run[1]/*.txt`."""
    folder, slash, _ = pattern.partition("*")[0].rpartition("/")
    return f"{glob.escape(folder)}{pattern[len(folder) :]}" if slash and fs.isdir(folder) else pattern
