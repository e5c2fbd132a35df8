"""Leases: a running process names the artifacts that it uses, and garbage collection keeps them.

A lease is a file `.leases/<id>.json` in the store with the paths of artifacts. Its process renews the file. A lease
expires one hour after its last renewal, so a killed process needs no clean-up. `.leases/<id>.began` marks when the
process began: whatever was made or used since is kept too, because a path may be in the lease only seconds later.

All times are those of the store: when it says that a file changed. Clocks of machines differ.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from bsl.storage.errors import StoreReadError, StoreWriteError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.folders import files_below
from bsl.storage.filesystem.os_errors import reading, writing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsl.storage.artifacts.store import Store

EXPIRES: Final = timedelta(hours=1)
_FOLDER: Final = ".leases"
_PATHS: Final = ".json"
_BEGAN: Final = ".began"


def begin_lease(store: Store, name: str) -> None:
    """Mark that a process begins to use the store: whatever is made or used from now on is protected.

    Raises:
        StoreWriteError: the store cannot be written.
    """
    with writing(store.url):
        store.fs.makedirs(f"{store.root}/{_FOLDER}", exist_ok=True)
        store.fs.pipe_file(f"{store.root}/{_FOLDER}/{name}{_BEGAN}", b"")
    write_lease(store, name, ())


def write_lease(store: Store, name: str, paths: Iterable[str]) -> None:
    """Write or renew the lease `name` of a process, which protects artifacts by their paths for an hour from now.

    Raises:
        StoreWriteError: the store cannot be written.
    """
    text = json.dumps(sorted(paths))
    with writing(store.url):
        if store.local is None:
            store.fs.pipe_file(f"{store.root}/{_FOLDER}/{name}{_PATHS}", text.encode())
            return
        with atomic_write(store.local / _FOLDER / f"{name}{_PATHS}") as path:
            path.write_text(text)


def release(store: Store, name: str) -> None:
    """Delete a lease.

    Raises:
        StoreWriteError: the store cannot be written.
    """
    for ending in (_PATHS, _BEGAN):
        with writing(store.url), suppress(FileNotFoundError):
            store.fs.rm_file(f"{store.root}/{_FOLDER}/{name}{ending}")


class Leases(NamedTuple):
    """What living processes use.

    Attributes:
        paths: paths of the artifacts that they name.
        since: when the first of them began; None without any.
        expired: names of the files of expired leases, relative to the store.
    """

    paths: set[str]
    since: datetime | None
    expired: list[str]


def leases(store: Store, now: datetime) -> Leases:
    """Read all leases.

    Args:
        store: the store.
        now: the time of the store, from `store_time`.

    Raises:
        StoreReadError: a lease cannot be read, so the artifacts that it protects are unknown.
    """
    changed = _changed(store)
    # A process that has begun and not written its paths yet has only the other file.
    renewed = {name.partition(".")[0]: changed[name] for name in sorted(changed)}  # `.json` after `.began`
    living = {process for process, time in renewed.items() if now - time <= EXPIRES}
    paths: set[str] = set()
    for name in changed:
        if name.endswith(_PATHS) and name.removesuffix(_PATHS) in living:
            with suppress(FileNotFoundError):  # released in the meantime
                paths |= _paths_of(store, f"{store.root}/{_FOLDER}/{name}")
    since = [time for name, time in changed.items() if name.endswith(_BEGAN) and name.removesuffix(_BEGAN) in living]
    expired = [f"{_FOLDER}/{name}" for name in changed if name.partition(".")[0] not in living]
    return Leases(paths, min(since, default=None), expired)


def _changed(store: Store) -> dict[str, datetime]:
    """Return the names of the files of all leases, sorted, with the times of their last changes."""
    found: dict[str, datetime] = {}
    with reading(store.url), suppress(FileNotFoundError):
        for path in sorted(files_below(store.fs, f"{store.root}/{_FOLDER}")):
            name = path.rpartition("/")[2]
            if name.endswith((_PATHS, _BEGAN)):
                with suppress(FileNotFoundError):  # released in the meantime
                    found[name] = store.fs.modified(path)
    return found


def store_time(store: Store) -> datetime:
    """Return the present time by the clock of the store: a file server's, or an object store's.

    A store that does not exist or cannot be written has no such answer, and nothing can be deleted from it: the time of
    this machine.
    """
    if store.local is not None and not store.local.is_dir():
        return datetime.now(UTC)
    path = f"{store.root}/{_FOLDER}/{uuid.uuid4().hex}.clock"
    try:
        with writing(store.url):
            store.fs.makedirs(f"{store.root}/{_FOLDER}", exist_ok=True)
            store.fs.pipe_file(path, b"")
            now: datetime = store.fs.modified(path)
            store.fs.rm_file(path)
    except StoreWriteError:
        return datetime.now(UTC)
    return now


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
