"""Whether an artifact is whole, in the store and in its copy on this machine: a manifest is trusted in nothing.

Design choices
- An artifact is whole if its manifest is that of its folder, its tables have all their parts and rows, and every file
  it lists is a regular file in its folder with the bytes that were published.
- Bytes are hashed once per process and file version. Whether a result is there is answered by what an object store
  has beside its files (`checksums`); what is read from it is hashed on this machine. A disk vouches for nothing: size
  and time of a local file stay as they were when its bytes rot.

What an object store keeps beside a file, so that asking costs a request and not the file.

S3 computes a SHA-256 of a whole object only where it came in one piece, which files above some hundred megabytes do
not. So the SHA-256 that the publisher took goes up as the object's own metadata (as rclone keeps its MD5): in one act
with the bytes, which the client guards with a checksum of its own on the way. An object that is written anew loses it,
and is hashed; a copy to another bucket takes it along. Of other stores nothing is known, and every file is hashed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fsspec

from storage.artifacts.manifest import MOST_BYTES, describe_files
from storage.artifacts.schemas import tables_of
from storage.errors import CorruptArtifactError
from storage.filesystem.atomic import renamed
from storage.filesystem.digests import version_content, version_sha256
from storage.filesystem.names import MANIFEST, irregular
from storage.filesystem.os_errors import reading

if TYPE_CHECKING:
    from storage.artifacts.manifest import FileEntry, Manifest

STAGING: Final = ".staging"
"""Where garbage collection finds what a killed process leaves."""
_KEY: Final = "sha256"  # S3 calls it x-amz-meta-sha256


def put(fs: fsspec.AbstractFileSystem, source: Path, target: str, entry: FileEntry) -> None:
    """Upload a file, with its SHA-256 where the store keeps one beside it."""
    beside = {"Metadata": {_KEY: entry.sha256}} if _is_s3(fs) else {}
    fs.put_file(str(source), target, **beside)


def has_checksum(fs: fsspec.AbstractFileSystem, path: str, entry: FileEntry) -> bool:
    """Whether the store says of a file, without sending it, that it has the content of `entry`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if not _is_s3(fs):
        return False
    bucket, key, _ = fs.split_path(path)
    head = fs.call_s3("head_object", fs.kwargs, Bucket=bucket, Key=key)
    return bool((head["ContentLength"], head["Metadata"].get(_KEY)) == (entry.size, entry.sha256))


def _is_s3(fs: fsspec.AbstractFileSystem) -> bool:
    return "s3" in fs.protocol


_REMEDY: Final = "delete the artifact or run its stage again"


def fault_of(
    fs: fsspec.AbstractFileSystem, folder: str, manifest: Manifest, *, local: bool, every_byte: bool
) -> str | None:
    """Return which file of an artifact is missing or not as it was published; None if none is.

    Args:
        fs: the store's file system.
        folder: the artifact's folder in it.
        manifest: its manifest.
        local: whether it is this machine's file system.
        every_byte: whether files are hashed although the store has a checksum.

    Raises:
        StoreReadError: the store does not say.
    """
    expected = tables_of(manifest.kind)
    if expected and not any(table in manifest.tables for table in expected):
        return f"{folder}/{MANIFEST}: lists no table {' or '.join(expected)}; {_REMEDY}"
    rows: dict[str, int | None] = {}
    for name, entry in manifest.files.items():
        path = manifest.where(name)
        try:
            with reading(f"{folder}/{path}"):
                fault, rows[name] = _file_fault(fs, folder, path, entry, local=local, every_byte=every_byte)
        except (FileNotFoundError, NotADirectoryError):
            fault = "missing, though its manifest lists it"
        if fault:
            return f"{folder}/{path}: {fault}; {_REMEDY}"
    for table, declared in manifest.tables.items():
        counts = [rows[name] for name in manifest.parts(table)]
        found = sum(count for count in counts if count is not None)
        if None not in counts and found != declared.rows:
            return (
                f"{folder}/{MANIFEST}: table {table!r} has {declared.rows:,} rows, its parts have {found:,}; {_REMEDY}"
            )
    return None


def local_manifest(path: Path) -> bytes:
    """Return the bytes of a manifest on this machine, where a name may be anything: a folder, a pipe that blocks.

    Raises:
        CorruptArtifactError: it is no regular file, or too large.
        FileNotFoundError: there is none.
    """
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        raise CorruptArtifactError(
            f"{path}: not a manifest, expected a regular file of at most {MOST_BYTES >> 20} MiB; {_REMEDY}"
        )
    return path.read_bytes()


def _file_fault(
    fs: fsspec.AbstractFileSystem, folder: str, name: str, entry: FileEntry, *, local: bool, every_byte: bool
) -> tuple[str | None, int | None]:
    """What is wrong with a file, and the rows that it has as a part of a table; None where it was not read."""
    if local and (kind := irregular(Path(folder), name)) is not None:
        return f"{kind}, expected a regular file", 0
    if not every_byte and has_checksum(fs, f"{folder}/{name}", entry):
        return None, None
    content = version_content(fs, f"{folder}/{name}")
    if content.sha256 != entry.sha256:
        return f"sha256 {content.sha256[:12]}…, manifest says {entry.sha256[:12]}…", 0
    return None, content.rows or 0


def local_copy(fs: fsspec.AbstractFileSystem, place: str, manifest: Manifest, cache: Path) -> Path:
    """Return a local folder with an artifact's files, copied first if need be.

    Args:
        fs: the store's file system.
        place: the artifact's folder in it.
        manifest: the artifact's manifest.
        cache: folder of the copies.

    Raises:
        CorruptArtifactError: what came is not what the manifest lists.
        StoreReadError: the store does not give a file.
    """
    folder = cache / manifest.ref.path / manifest.digest[:16]
    if not _is_copy(folder, manifest):
        shutil.rmtree(folder, ignore_errors=True)
        for needed in (folder.parent, cache / STAGING):
            needed.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache / STAGING) as staging:
            _copy(fs, place, manifest, Path(staging) / "files")
            renamed(Path(staging) / "files", folder)
    with suppress(OSError):  # another user's copy may be read
        os.utime(folder)  # used now, from which collection tells its age
    return folder


def _copy(fs: fsspec.AbstractFileSystem, place: str, manifest: Manifest, folder: Path) -> None:
    """Bring the files of an artifact to a local folder, and hash what has come."""
    for name in manifest.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            with reading(place):
                fs.get_file(f"{place}/{manifest.where(name)}", str(folder / name))
        except FileNotFoundError as error:
            raise CorruptArtifactError(
                f"{place}/{manifest.where(name)}: gone since it was looked for; {_REMEDY}"
            ) from error
    for name, entry in describe_files(folder).items():
        if entry != manifest.files[name]:
            raise CorruptArtifactError(
                f"{place}/{manifest.where(name)}: what came has sha256 {entry.sha256[:12]}…, manifest says "
                f"{manifest.files[name].sha256[:12]}…; delete {place} and run its stage again"
            )


def _is_copy(folder: Path, manifest: Manifest) -> bool:
    """Whether a local folder holds an artifact's files and no others; each version of a file is hashed once."""
    here = fsspec.filesystem("file")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return names == set(manifest.files) and all(
        version_sha256(here, f"{folder}/{name}") == entry.sha256 for name, entry in manifest.files.items()
    )
