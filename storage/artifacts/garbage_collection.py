"""Delete old artifacts that no recent report, recent evaluation or running process needs."""

from __future__ import annotations

import logging
import shutil
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from bsl.storage.artifacts.leases import leases, store_time
from bsl.storage.artifacts.refs import ADDRESS, ArtifactRef
from bsl.storage.errors import (
    ArtifactInUseError,
    ArtifactMissingError,
    CorruptArtifactError,
    NewerFormatError,
    StorageError,
)
from bsl.storage.filesystem.atomic import last_changed
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.filesystem.os_errors import reading, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from bsl.storage.artifacts.leases import Leases
    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.store import Store

logger = logging.getLogger(__name__)

_UNFINISHED = (".staging/*", ".scratch/*/*", ".trash/*")
_ROOTS = ("report", "evaluation", "reproduction", "sweep")
_MAX_PAUSE = timedelta(days=1)  # a stage may compute this long between two files
_MAX_RUN = timedelta(days=30)  # a run may use an uploaded object until its last shard is done


def readable_manifests(store: Store, kind: str | None = None) -> list[Manifest]:
    """Return the manifests of all artifacts, or of one kind; skip unreadable ones with a warning."""
    manifests, faults = _manifests(store, kind)
    for fault in faults:
        logger.warning("skipped: %s", fault)
    return manifests


def _manifests(store: Store, kind: str | None = None) -> tuple[list[Manifest], list[StorageError]]:
    """Return the manifests of all artifacts, or of one kind, and the errors of unreadable ones."""
    found, faults = [], []
    for ref in store.refs(kind):
        try:
            found.append(store.manifest(ref))
        except StorageError as error:
            faults.append(error)
    return found, faults


def collectable(store: Store, older_than: timedelta, now: datetime) -> list[Manifest]:
    """Return the artifacts that may be deleted: unused since `now - older_than`, and neither leased nor needed.

    An artifact is needed if a leased artifact, or a younger report or evaluation, was made from it. An artifact is used
    when it is made and at every cache hit. Translations are never deleted by age, because later runs reuse them.
    Artifacts that were made or used since a living process began count as leased.

    Args:
        store: the store.
        older_than: minimal time since the last use.
        now: the time of the store, from `store_time`.

    Raises:
        CorruptArtifactError: a manifest cannot be read, so its inputs are unknown; delete its artifact first.
        StoreReadError: the store cannot be listed or read.
    """
    found, faults = _manifests(store)
    if faults := [fault for fault in faults if not isinstance(fault, ArtifactMissingError)]:  # deleted by another
        raise CorruptArtifactError(
            f"{len(faults)} manifests cannot be read, so their inputs are unknown and nothing is deleted: "
            f"{'; '.join(map(str, faults[:3]))}"
        )
    manifests = {manifest.ref.path: manifest for manifest in found}
    old = {path for path, manifest in manifests.items() if now - store.last_used(manifest) > older_than}
    living = leases(store, now)
    pending = [
        manifest
        for path, manifest in manifests.items()
        if _is_leased(store, manifest.ref, living) or (manifest.kind in _ROOTS and path not in old)
    ]
    needed: set[str] = set()
    while pending:
        manifest = pending.pop()
        if manifest.ref.path not in needed:
            needed.add(manifest.ref.path)
            paths = (source.path for source in manifest.provenance.inputs.values())
            pending += [manifests[path] for path in paths if path in manifests]
    return [
        manifest
        for path, manifest in manifests.items()
        if path in old - needed and not manifest.kind.startswith("translations/")
    ]


def made_from(store: Store, refs: Sequence[ArtifactRef]) -> list[ArtifactRef]:
    """Return the artifacts whose direct inputs are among `refs`; those with unreadable manifests are not known."""
    paths = {ref.path for ref in refs}
    manifests = [manifest for manifest in _manifests(store)[0] if manifest.ref.path not in paths]
    return [
        manifest.ref
        for manifest in manifests
        if not paths.isdisjoint(source.path for source in manifest.provenance.inputs.values())
    ]


def delete(store: Store, refs: Sequence[ArtifactRef]) -> None:
    """Delete artifacts, also with unreadable manifests, unless a running process uses one of them.

    Raises:
        ArtifactInUseError: A running process uses one, or has made or used it; nothing is deleted.
        StoreReadError, StoreWriteError: The store cannot be read or written.
    """
    living = leases(store, store_time(store))
    if used := [str(ref) for ref in refs if _is_leased(store, ref, living)]:
        raise ArtifactInUseError(
            f"{', '.join(used)}: in use by a running command, so nothing is deleted. Wait until the command "
            "ends, or for an hour after a kill."
        )
    for ref in refs:
        store.remove(ref)


def _is_leased(store: Store, ref: ArtifactRef, living: Leases) -> bool:
    return ref.path in living.paths or (living.since is not None and store.changed(ref) >= living.since)


def leftovers(store: Store, older_than: timedelta, now: datetime) -> list[Path | str]:
    """Return what ended processes left: local folders, and the names of files in the store.

    The folders are staging, state of unfinished stages, replaced artifacts, and copies of an object store's artifacts
    that are old or belong to a deleted artifact. A folder's age is the age of its newest file, or of a copy's last
    read; folders younger than a day are excluded, because their stage may still run.

    The files are expired leases, and object-store files older than 30 days that no manifest lists: from killed uploads,
    from publishers that lost a race, and from artifacts that were made again.

    Raises:
        StoreReadError: the store cannot be listed.
    """
    limit = now.timestamp() - max(older_than, _MAX_PAUSE).total_seconds()
    unfinished = (path for pattern in _UNFINISHED for path in store.workplace.glob(pattern))
    folders = sorted(folder for folder in unfinished if last_changed(folder) < limit)
    expired = leases(store, now).expired
    if store.local is None:  # a local folder needs no copy, and appears complete, by a rename
        uploads = _forgotten_uploads(store, now - max(older_than, _MAX_RUN))
        return [*folders, *sorted(_unused_copies(store, older_than, now)), *uploads, *expired]
    return [*folders, *expired]


def _unused_copies(store: Store, older_than: timedelta, now: datetime) -> Iterator[Path]:
    existing = {ref.path for ref in store.refs()}
    for folder in (*store.workplace.glob("*/*/*"), *store.workplace.glob("*/*/*/*")):
        name = folder.parent.relative_to(store.workplace).as_posix()
        if ADDRESS.fullmatch(name):
            least = max(older_than, _MAX_PAUSE) if name in existing else _MAX_PAUSE
            with suppress(FileNotFoundError):  # another collection deleted it
                if now.timestamp() - folder.lstat().st_mtime > least.total_seconds():
                    yield folder


def _forgotten_uploads(store: Store, before: datetime) -> list[str]:
    """Return the names of object-store files that no manifest lists and that were uploaded before a time."""
    folders: defaultdict[ArtifactRef, set[str]] = defaultdict(set)
    with reading(store.url):
        try:
            paths = [path.removeprefix(f"{store.root}/") for path in store.fs.find(store.root)]
        except FileNotFoundError:
            return []
        for path in paths:
            if (found := ADDRESS.match(path)) and found.end() < len(path):
                folders[ArtifactRef(kind=found["kind"], key=found["key"])].add(path[found.end() + 1 :])
        unlisted = (f"{ref.path}/{name}" for ref, names in folders.items() for name in _unlisted(store, ref, names))
        return [name for name in unlisted if store.fs.modified(f"{store.root}/{name}") < before]


def _unlisted(store: Store, ref: ArtifactRef, names: set[str]) -> list[str]:
    """Return the names that an artifact's manifest does not list; none if it cannot be read."""
    try:
        manifest = store.manifest(ref)
    except ArtifactMissingError:
        return sorted(names)
    except (CorruptArtifactError, NewerFormatError):
        return []
    return sorted(names - {MANIFEST, *map(manifest.where, manifest.files)})


def collect(
    store: Store,
    manifests: Sequence[Manifest],
    left: Sequence[Path | str] = (),
    used_before: datetime | None = None,
) -> list[Manifest]:
    """Delete the artifacts and the leftovers listed by the functions above; return the manifests of the artifacts.

    Leased artifacts, and artifacts used since `used_before`, are not deleted: a run read them after they were listed.
    """
    for path in left:
        if isinstance(path, str):
            with writing(store.url), suppress(FileNotFoundError):  # released, or deleted by another collection
                store.fs.rm_file(f"{store.root}/{path}")
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)  # a file or link found at the path of an artifact
    deleted = []
    for manifest in manifests:
        if _is_leased(store, manifest.ref, leases(store, store_time(store))):  # deleting a long list takes minutes
            continue
        if used_before is None or store.last_used(manifest) < used_before:
            store.remove(manifest.ref)
            deleted.append(manifest)
    return deleted
