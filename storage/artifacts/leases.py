"""Leases: a running process names the artifacts that it uses, and garbage collection keeps them.

A lease is a file `.leases/<id>.json` in the store with the paths of artifacts. Its process renews the file. A lease
expires one hour after its last renewal, so a killed process needs no clean-up.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from storage.errors import StoreReadError
from storage.filesystem.atomic import whole
from storage.filesystem.folders import files_below
from storage.filesystem.os_errors import reading, writing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from storage.artifacts.store import Store

EXPIRES: Final = timedelta(hours=1)
_FOLDER: Final = ".leases"


def write_lease(store: Store, name: str, paths: Iterable[str]) -> None:
    """Write or renew the lease `name` of a process, which protects artifacts by their paths for an hour from now.

    Raises:
        StoreWriteError: the store cannot be written.
    """
    text = json.dumps(sorted(paths))
    with writing(store.url):
        if store.local is None:
            store.fs.pipe_file(f"{store.root}/{_FOLDER}/{name}.json", text.encode())
            return
        with whole(store.local / _FOLDER / f"{name}.json") as path:
            path.write_text(text)


def release(store: Store, name: str) -> None:
    """Delete a lease.

    Raises:
        StoreWriteError: the store cannot be written.
    """
    with writing(store.url), suppress(FileNotFoundError):
        store.fs.rm_file(f"{store.root}/{_FOLDER}/{name}.json")


def leases(store: Store, now: datetime) -> tuple[set[str], list[str]]:
    """Return the paths of the artifacts that leases protect, and the names of expired leases, relative to the store.

    Raises:
        StoreReadError: a lease cannot be read, so the artifacts that it protects are unknown.
    """
    paths: set[str] = set()
    expired = []
    with reading(store.url), suppress(FileNotFoundError):
        for path in sorted(files_below(store.fs, f"{store.root}/{_FOLDER}")):
            if not path.endswith(".json"):
                continue
            with suppress(FileNotFoundError):  # released in the meantime
                if now - store.fs.modified(path) > EXPIRES:
                    expired.append(path.removeprefix(f"{store.root}/"))
                else:
                    paths |= _paths_of(store, path)
    return paths, expired


def _paths_of(store: Store, path: str) -> set[str]:
    with reading(path):
        text = store.fs.cat_file(path)
    try:
        return set(json.loads(text))
    except (ValueError, TypeError) as error:
        raise StoreReadError(
            f"{path}: not a lease (expected a JSON list of paths), so the artifacts that a run uses are "
            "unknown. Delete the file if that run has ended."
        ) from error
