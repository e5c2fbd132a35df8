"""List the artifact folders of a store.

A folder that cannot be listed is an error: garbage collection by an incomplete list would delete needed artifacts.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from storage.artifacts.refs import KEY, ArtifactRef
from storage.filesystem.folders import files_below
from storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    import fsspec

logger = logging.getLogger(__name__)

_DEEPEST = 3  # <kind>/<nested kind>/<key>


def artifact_refs(fs: fsspec.AbstractFileSystem, root: str, kind: str | None, *, local: bool) -> list[ArtifactRef]:
    """Return references to all folders with a manifest, sorted by path; manifests are not read.

    A folder with a manifest but without an artifact's name is skipped with a warning. Folders inside an artifact, for
    example a model with a manifest, are skipped silently.

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
    """Yield the folders that contain a manifest (a file or a folder), relative to the root; follow links to folders."""
    for folder, folders, files in os.walk(root / below, onerror=_refuse, followlinks=True):
        path = Path(folder).relative_to(root)
        if len(path.parts) >= 2 and MANIFEST in (*folders, *files):
            yield path.as_posix()
        folders[:] = [name for name in folders if not name.startswith(".") and len(path.parts) < _DEEPEST]


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _is_inside(path: str, found: set[str]) -> bool:
    """Return whether the parent of a folder is an artifact."""
    above = path.rpartition("/")[0]
    return above in found and re.fullmatch(KEY, above.rpartition("/")[2]) is not None


def _remote_folders(fs: fsspec.AbstractFileSystem, folder: str, root: str) -> Iterator[str]:
    try:
        paths = list(files_below(fs, folder, _DEEPEST + 1))
    except FileNotFoundError:
        return
    for path in paths:
        below = path[len(root) + 1 :]
        if below.endswith(f"/{MANIFEST}") and 2 <= below.count("/") <= _DEEPEST:
            yield below.removesuffix(f"/{MANIFEST}")


def _ref(path: str) -> ArtifactRef | None:
    """Return the reference to `<kind>/<key>`; None for a folder that is not an artifact."""
    kind, _, key = path.rpartition("/")
    try:
        return ArtifactRef(kind=kind, key=key)
    except ValidationError:
        logger.warning(
            "%s is not named <kind>/<64 hex digits>, so it is not an artifact. Move it out of the store.",
            repr(path)[1:-1],
        )
        return None
