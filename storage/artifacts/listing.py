"""Which artifact folders a store has, without silence: what cannot be listed is an error, not an empty store.

fsspec's `glob` leaves out what it may not read, and whoever counts on the rest (`gc`) deletes too much.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fsspec.asyn import AsyncFileSystem
from pydantic import ValidationError

from storage.artifacts.refs import KEY, ArtifactRef
from storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    import fsspec

logger = logging.getLogger(__name__)

_DEEPEST = 3  # <kind>/<nested kind>/<key>


def artifact_refs(fs: fsspec.AbstractFileSystem, root: str, kind: str | None, *, local: bool) -> list[ArtifactRef]:
    """References to the folders that hold a manifest, by path; none has been read.

    A folder with a manifest that is not named as an artifact is left out with a warning; one inside an artifact, which
    may hold a model with a manifest of its own, without.

    Args:
        fs: the store's file system.
        root: the store in it.
        kind: artifacts of this kind and of the kinds nested in it; all if None.
        local: whether it is this machine's file system.

    Raises:
        OSError: a folder may not be listed, or whatever else an object store's client raises.
    """
    folder = f"{root}/{kind}" if kind else root
    found = set(_local_folders(Path(root), kind or "") if local else _remote_folders(fs, folder, root))
    paths = sorted(path for path in found if not path.startswith(".") and not _is_inside(path, found))
    return [ref for path in paths if (ref := _ref(path)) is not None]


def _local_folders(root: Path, below: str) -> Iterator[str]:
    """Folders with a manifest, relative to the root."""
    depth = below.count("/") + 1 if below else 0
    try:
        entries = list(os.scandir(root / below))
    except (FileNotFoundError, NotADirectoryError):
        return
    if depth >= 2 and any(entry.name == MANIFEST for entry in entries):
        yield below
    if depth < _DEEPEST:
        for entry in entries:
            if not entry.name.startswith(".") and _is_folder(entry):
                yield from _local_folders(root, f"{below}/{entry.name}" if below else entry.name)


def _is_inside(path: str, found: set[str]) -> bool:
    """Whether it is the folder of an artifact's own file; below a folder that is no artifact there may be some."""
    above = path.rpartition("/")[0]
    return above in found and re.fullmatch(KEY, above.rpartition("/")[2]) is not None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or a link to one; a link that leads nowhere or in a circle is none."""
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and Path(entry.path).is_dir())


def _remote_folders(fs: fsspec.AbstractFileSystem, folder: str, root: str) -> Iterator[str]:
    try:
        paths = files_below(fs, folder, _DEEPEST + 1)
    except FileNotFoundError:
        return
    for path in paths:
        below = path[len(root) + 1 :]
        if below.endswith(f"/{MANIFEST}") and 2 <= below.count("/") <= _DEEPEST:
            yield below.removesuffix(f"/{MANIFEST}")


def files_below(fs: fsspec.AbstractFileSystem, folder: str, depth: int) -> list[str]:
    """Return all files below a folder, by one flat listing where the client has one, else to a depth.

    A request for a flat listing gives a thousand names, not one folder's.

    Raises:
        OSError: a folder may not be listed, which `find` with a depth of its own leaves out.
    """
    if getattr(type(fs), "_find", AsyncFileSystem._find) is not AsyncFileSystem._find:
        return [str(path) for path in fs.find(folder)]
    return [str(path) for path in fs.find(folder, maxdepth=depth, on_error="raise")]


def _ref(path: str) -> ArtifactRef | None:
    """The reference to `<kind>/<key>`; None for a folder that somebody else put there."""
    kind, _, key = path.rpartition("/")
    try:
        return ArtifactRef(kind=kind, key=key)
    except ValidationError:
        logger.warning(
            "%s is not named <kind>/<64 hex digits>, so it is no artifact; move it out of the store", repr(path)[1:-1]
        )
        return None
