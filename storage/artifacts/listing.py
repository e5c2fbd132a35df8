"""List the artifact folders of a store; a folder that cannot be listed is an error.

fsspec's `glob` silently skips unreadable folders, and garbage collection by an incomplete list deletes too much.
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
    """Return references to all folders with a manifest, sorted by path; manifests are not read.

    A folder with a manifest but without an artifact's name is skipped with a warning. A folder inside an artifact, for
    example a model with a manifest, is skipped silently.

    Args:
        fs: the store's file system.
        root: path of the store in it.
        kind: artifacts of this kind and of the kinds nested in it; all if None.
        local: whether it is this machine's file system.

    Raises:
        OSError: a folder cannot be listed; an object store's client may raise other errors.
    """
    folder = f"{root}/{kind}" if kind else root
    found = set(_local_folders(Path(root), kind or "") if local else _remote_folders(fs, folder, root))
    paths = sorted(path for path in found if not path.startswith(".") and not _is_inside(path, found))
    return [ref for path in paths if (ref := _ref(path)) is not None]


def _local_folders(root: Path, below: str) -> Iterator[str]:
    """Yield the folders with a manifest, relative to the root."""
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
    """Return whether a folder is part of an artifact; folders below one that is not an artifact are not."""
    above = path.rpartition("/")[0]
    return above in found and re.fullmatch(KEY, above.rpartition("/")[2]) is not None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; broken and circular links are not."""
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
    """Return all files below a folder, by one flat listing if the client supports it, else down to a depth.

    One request of a flat listing returns a thousand names, across folders.

    Raises:
        OSError: a folder cannot be listed; fsspec's own `find` skips such a folder.
    """
    if getattr(type(fs), "_find", AsyncFileSystem._find) is not AsyncFileSystem._find:
        return [str(path) for path in fs.find(folder)]
    return [str(path) for path in fs.find(folder, maxdepth=depth, on_error="raise")]


def _ref(path: str) -> ArtifactRef | None:
    """Return the reference to `<kind>/<key>`; None for a folder that is not an artifact."""
    kind, _, key = path.rpartition("/")
    try:
        return ArtifactRef(kind=kind, key=key)
    except ValidationError:
        logger.warning(
            "%s is not named <kind>/<64 hex digits>, so it is no artifact; move it out of the store", repr(path)[1:-1]
        )
        return None
