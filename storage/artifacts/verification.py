"""Verify an artifact's files against its manifest, in the store and in the local copy.

Design choices
- An artifact is intact if its manifest belongs to its folder, its tables have all parts and rows, and every listed file
  is a regular file in its folder with the published bytes.
- Bytes are hashed once per process and file version. On S3 the publisher's SHA-256 is the object's metadata, which
  suffices to look up a cached result (docs/decisions.md); files are hashed when they are read.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.storage.artifacts.manifest import MOST_BYTES
from bsl.storage.artifacts.refs import deletion
from bsl.storage.artifacts.schemas import tables_of
from bsl.storage.errors import CorruptArtifactError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.caches import filling
from bsl.storage.filesystem.digests import describe_files, version_content
from bsl.storage.filesystem.names import MANIFEST, irregular
from bsl.storage.filesystem.os_errors import reading

if TYPE_CHECKING:
    import fsspec

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.filesystem.digests import FileEntry

_KEY: Final = "sha256"  # S3 calls it x-amz-meta-sha256


def put(fs: fsspec.AbstractFileSystem, source: Path, target: str, entry: FileEntry) -> None:
    """Upload a file, with its SHA-256 as metadata where the store supports it."""
    metadata = {"Metadata": {_KEY: entry.sha256}} if _is_s3(fs) else {}
    fs.put_file(str(source), target, **metadata)


def _has_checksum(fs: fsspec.AbstractFileSystem, path: str, entry: FileEntry) -> bool:
    """Return whether the store's checksum of a file equals that of `entry`; the file is not downloaded."""
    if not _is_s3(fs):
        return False
    bucket, key, _ = fs.split_path(path)
    head = fs.call_s3("head_object", fs.kwargs, Bucket=bucket, Key=key)
    return bool((head["ContentLength"], head["Metadata"].get(_KEY)) == (entry.size, entry.sha256))


def _is_s3(fs: fsspec.AbstractFileSystem) -> bool:
    return "s3" in fs.protocol


def fault_of(
    fs: fsspec.AbstractFileSystem, folder: str, manifest: Manifest, *, local: bool, every_byte: bool
) -> str | None:
    """Return the fault of the first missing or changed file in an artifact's folder; None if the artifact is intact.

    With `every_byte`, files are hashed even if the store has a checksum.

    Raises:
        StoreReadError: the store cannot be read.
    """
    expected, remedy = tables_of(manifest.kind), deletion(manifest.ref)
    if expected and not any(table in manifest.tables for table in expected):
        return f"{folder}/{MANIFEST}: lists no table {' or '.join(expected)}. {remedy}"
    rows: dict[str, int | None] = {}
    for name, entry in manifest.files.items():
        path = manifest.where(name)
        try:
            with reading(f"{folder}/{path}"):
                fault, rows[name] = _file_fault(fs, folder, path, entry, local=local, every_byte=every_byte)
        except (FileNotFoundError, NotADirectoryError):
            fault = "missing, although the manifest lists it"
        if fault:
            return f"{folder}/{path}: {fault}. {remedy}"
    for table, declared in manifest.tables.items():
        counts = [rows[name] for name in manifest.parts(table)]
        found = sum(count for count in counts if count is not None)
        if None not in counts and found != declared.rows:
            return (
                f"{folder}/{MANIFEST}: table {table!r} has {declared.rows:,} rows, its parts have {found:,}. {remedy}"
            )
    return None


def local_manifest(path: Path, ref: ArtifactRef) -> bytes:
    """Return the bytes of the local manifest of `ref`; refuse a folder, or a pipe, which would block.

    Raises:
        CorruptArtifactError: it is not a regular file, or too large.
        FileNotFoundError: it does not exist.
    """
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        raise CorruptArtifactError(
            f"{path}: not a manifest, expected a regular file of at most {MOST_BYTES >> 20} MiB. {deletion(ref)}"
        )
    return path.read_bytes()


def _file_fault(
    fs: fsspec.AbstractFileSystem, folder: str, name: str, entry: FileEntry, *, local: bool, every_byte: bool
) -> tuple[str | None, int | None]:
    """Return the fault of a file, and its row count if it is a table part; None if it was not read."""
    if local and (kind := irregular(Path(folder), name)) is not None:
        return f"{kind}, expected a regular file", 0
    if not every_byte and _has_checksum(fs, f"{folder}/{name}", entry):
        return None, None
    content = version_content(fs, f"{folder}/{name}")
    if content.sha256 != entry.sha256:
        return f"sha256 {content.sha256[:12]}…, expected {entry.sha256[:12]}… from the manifest", 0
    return None, content.rows or 0


def local_copy(fs: fsspec.AbstractFileSystem, source: str, manifest: Manifest, cache: Path) -> Path:
    """Return a folder in the cache with an artifact's files, which are copied from its folder `source` if necessary.

    Raises:
        CorruptArtifactError: a copied file differs from the manifest.
        StoreReadError: a file cannot be read from the store.
        StoreWriteError: the cache cannot be written.
    """
    folder = cache / manifest.ref.path / manifest.digest[:16]
    if describe_files(folder) != manifest.files:
        shutil.rmtree(folder, ignore_errors=True)
        with filling(folder), atomic_write(folder, keep_existing=True) as copy:
            _copy(fs, source, manifest, copy)
    with suppress(OSError):  # the copy may belong to another user
        os.utime(folder)  # the time of last use, for garbage collection
    return folder


def _copy(fs: fsspec.AbstractFileSystem, source: str, manifest: Manifest, folder: Path) -> None:
    """Copy the files of an artifact to a local folder and verify their hashes."""
    for name in manifest.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            with reading(source):
                fs.get_file(f"{source}/{manifest.where(name)}", str(folder / name))
        except FileNotFoundError as error:
            raise CorruptArtifactError(
                f"{source}/{manifest.where(name)}: deleted since it was checked. {deletion(manifest.ref)}"
            ) from error
    for name, entry in describe_files(folder).items():
        if entry != manifest.files[name]:
            raise CorruptArtifactError(
                f"{source}/{manifest.where(name)}: the copy has sha256 {entry.sha256[:12]}…, expected "
                f"{manifest.files[name].sha256[:12]}… from the manifest. {deletion(manifest.ref)}"
            )
