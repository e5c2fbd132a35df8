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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from storage.artifacts.verification import Holdings

_FILE: Final = re.compile(r"(?P<kind>[a-z0-9_]{1,64}(/[a-z0-9-]{1,64})??)/(?P<key>[0-9a-f]{64})/(?P<name>.+)")
_PLACED: Final = re.compile(r"([0-9a-f]{32})/.+")


def unnamed(holdings: Holdings, paths: Iterable[str]) -> Iterator[str]:
    """Files in artifacts' folders that are not their manifests' own; none of an artifact whose manifest is unreadable.

    Args:
        holdings: the store.
        paths: all its files, relative to it.

    Raises:
        StoreReadError: it does not give a manifest out.
    """
    folders: defaultdict[ArtifactRef, set[str]] = defaultdict(set)
    for path in paths:
        if file := _FILE.fullmatch(path):
            folders[ArtifactRef(kind=file["kind"], key=file["key"])].add(file["name"])
    for ref, names in folders.items():
        uploads = {_place(name) for name in names - {MANIFEST}}
        if MANIFEST not in names or len(uploads) > 1:
            yield from (f"{ref.path}/{name}" for name in sorted(names - _named(holdings, ref, names)))


def _place(name: str) -> str:
    return found[1] if (found := _PLACED.fullmatch(name)) else ""


def _named(holdings: Holdings, ref: ArtifactRef, names: set[str]) -> set[str]:
    try:
        manifest = holdings.manifest(ref)
    except ArtifactMissingError:
        return set()
    except StoreReadError:
        raise
    except StorageError:
        return names  # what it needs is not known, so all is kept
    return {MANIFEST, *map(manifest.where, manifest.files)}
