"""List the artifact folders of a store.

A folder that cannot be listed is an error: garbage collection by an incomplete list would delete needed artifacts.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from storage.artifacts.refs import ADDRESS, ArtifactRef
from storage.filesystem.folders import files_below
from storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.artifacts.store import Store

logger = logging.getLogger(__name__)

_DEEPEST = 3  # <kind>/<nested kind>/<key>


def artifact_refs(store: Store, kind: str | None) -> list[ArtifactRef]:
    """Return the artifacts of a kind and of the kinds nested in it, or all, sorted by path; manifests are not read.

    A folder with a manifest but without an artifact's name is skipped with a warning. Folders inside an artifact, for
    example a model with a manifest, are skipped silently.

    Raises:
        OSError: a folder cannot be listed; an object store's client may raise other errors.
    """
    folder = f"{store.root}/{kind}" if kind else store.root
    files = _local_manifests(store.root, folder) if store.local is not None else _remote_files(store, folder)
    below = (file[len(store.root) + 1 :] for file in files)
    paths = {path.removesuffix(f"/{MANIFEST}") for path in below if path.endswith(f"/{MANIFEST}")}
    refs = []
    for path in sorted(paths):
        artifact = ADDRESS.match(path)
        if artifact is not None and artifact.end() == len(path):
            refs.append(ArtifactRef(kind=artifact["kind"], key=artifact["key"]))
        elif artifact is None and 1 <= path.count("/") < _DEEPEST:
            logger.warning(
                "%s is not named <kind>/<64 hex digits>, so it is not an artifact. Move it out of the store.",
                repr(path)[1:-1],
            )
    return refs


def _local_manifests(root: str, below: str) -> Iterator[str]:
    """Yield the paths of manifests (files or folders) down to the depth of artifacts; follow links to folders."""
    for folder, folders, files in os.walk(below, onerror=_refuse, followlinks=True):
        if MANIFEST in (*folders, *files):
            yield f"{folder}/{MANIFEST}"
        depth = folder[len(root) :].count("/")
        folders[:] = [name for name in folders if not name.startswith(".") and depth < _DEEPEST]


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _remote_files(store: Store, folder: str) -> list[str]:
    try:
        return list(files_below(store.fs, folder))
    except FileNotFoundError:
        return []
