"""Leases: a running process names the artifacts that it uses, and garbage collection keeps them.

A lease is a file `.leases/<id>.json` in the store with the paths of artifacts. Its process renews the file. A lease
expires one hour after its last renewal, so a killed process needs no clean-up.
"""

from __future__ import annotations

import json
import logging
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from storage.errors import StoreReadError
from storage.filesystem.atomic import whole
from storage.filesystem.folders import files_below
from storage.filesystem.os_errors import reading, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store

logger = logging.getLogger(__name__)

EXPIRES: Final = timedelta(hours=1)
_FOLDER: Final = ".leases"


class Lease:
    """A lease of one process on artifacts of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._name = f"{_FOLDER}/{uuid.uuid4().hex}.json"
        self._paths: set[str] = set()

    def add(self, refs: Iterable[ArtifactRef]) -> bool:
        """Add artifacts, which need not exist yet; `renew` protects them. Return False if none is new."""
        new = {ref.path for ref in refs} - self._paths
        self._paths = self._paths | new  # a new set: another thread may be writing the old one
        return bool(new)

    def renew(self) -> None:
        """Write the lease, which protects its artifacts for an hour from now.

        Raises:
            StoreWriteError: the store cannot be written.
        """
        text = json.dumps(sorted(self._paths))
        with writing(self._store.url):
            if self._store.local is None:
                self._store.fs.pipe_file(f"{self._store.root}/{self._name}", text.encode())
                return
            with whole(self._store.local / self._name) as path:
                path.write_text(text)

    def release(self) -> None:
        """Delete the lease.

        Raises:
            StoreWriteError: the store cannot be written.
        """
        with writing(self._store.url), suppress(FileNotFoundError):
            self._store.fs.rm_file(f"{self._store.root}/{self._name}")


def leased(store: Store, now: datetime) -> set[str]:
    """Return the paths of the artifacts that leases protect.

    Raises:
        StoreReadError: a lease cannot be read, so the artifacts that it protects are unknown.
    """
    paths: set[str] = set()
    for name, modified in _leases(store):
        if now - modified <= EXPIRES:
            with suppress(FileNotFoundError):  # released in the meantime
                paths |= _paths_of(store, name)
    return paths


def expired_leases(store: Store, now: datetime) -> list[str]:
    """Return the names of expired leases, relative to the store.

    Raises:
        StoreReadError: the store cannot be listed.
    """
    return sorted(name for name, modified in _leases(store) if now - modified > EXPIRES)


def _leases(store: Store) -> Iterator[tuple[str, datetime]]:
    with reading(store.url):
        try:
            found = list(files_below(store.fs, f"{store.root}/{_FOLDER}"))
        except FileNotFoundError:
            return
        for path in found:
            if path.endswith(".json"):
                with suppress(FileNotFoundError):  # released in the meantime
                    yield f"{_FOLDER}/{path.rpartition('/')[2]}", store.fs.modified(path)


def _paths_of(store: Store, name: str) -> set[str]:
    path = f"{store.root}/{name}"
    with reading(path):
        text = store.fs.cat_file(path)
    try:
        return set(json.loads(text))
    except (ValueError, TypeError) as error:
        raise StoreReadError(
            f"{path}: not a lease (expected a JSON list of paths), so the artifacts that a run uses are "
            "unknown. Delete the file if that run has ended."
        ) from error
