"""Files on an object store that no manifest names.

Killed uploads leave them, publishers that met another's manifest too late, and artifacts that were made again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from storage.artifacts.refs import ArtifactRef
from storage.errors import ArtifactMissingError, StorageError, StoreReadError
from storage.filesystem.names import MANIFEST
from storage.filesystem.os_errors import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from storage.artifacts.store import Store

_FILE: Final = re.compile(r"(?P<kind>[a-z0-9_]{1,64}(/[a-z0-9-]{1,64})??)/(?P<key>[0-9a-f]{64})/(?P<name>.+)")
_PLACED: Final = re.compile(r"([0-9a-f]{32})/.+")


def forgotten_uploads(store: Store, before: datetime) -> list[str]:
    """Names of files on an object store that no manifest names, uploaded before some time.

    Raises:
        StoreReadError: the store cannot be listed.
    """
    if store.local is not None:
        return []  # a folder appears as a whole
    with reading(store.url):
        try:
            paths = [path.removeprefix(f"{store.root}/") for path in store.fs.find(store.root)]
        except FileNotFoundError:
            return []
        return [name for name in _unnamed(store, paths) if store.fs.modified(f"{store.root}/{name}") < before]


def _unnamed(store: Store, paths: Iterable[str]) -> Iterator[str]:
    """Files in artifacts' folders that are not their manifests' own; none of one whose manifest is unreadable."""
    folders: defaultdict[ArtifactRef, set[str]] = defaultdict(set)
    for path in paths:
        if file := _FILE.fullmatch(path):
            folders[ArtifactRef(kind=file["kind"], key=file["key"])].add(file["name"])
    for ref, names in folders.items():
        uploads = {_place(name) for name in names - {MANIFEST}}
        if MANIFEST not in names or len(uploads) > 1:
            yield from (f"{ref.path}/{name}" for name in sorted(names - _named(store, ref, names)))


def _place(name: str) -> str:
    return found[1] if (found := _PLACED.fullmatch(name)) else ""


def _named(store: Store, ref: ArtifactRef, names: set[str]) -> set[str]:
    try:
        manifest = store.manifest(ref)
    except ArtifactMissingError:
        return set()
    except StoreReadError:
        raise
    except StorageError:
        return names  # what it needs is not known, so all is kept
    return {MANIFEST, *map(manifest.where, manifest.files)}
