"""Compute the size and sha256 of files and folders, and the row counts of Parquet files."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import fsspec
from fsspec.implementations.local import LocalFileSystem
from pydantic import Field

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.folders import is_hidden
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHA256: Final = r"^[0-9a-f]{64}$"


class Content(NamedTuple):
    """Digest of a file, and the row count in the footer of a `.parquet` file; None for other files and bad footers."""

    sha256: str
    rows: int | None


class FileEntry(Record):
    """Size in bytes and digest of a file."""

    size: int = Field(ge=0, le=2**63 - 1)
    sha256: str = Field(pattern=SHA256)


_cache: dict[str, Content] = {}  # by file version (fsspec's ukey)


def file_sha256(path: Path) -> str:
    """Return the sha256 of a local file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def version_content(fs: fsspec.AbstractFileSystem, path: str) -> Content:
    """Return digest and row count of a file at any fsspec address; a process reads each version of a file once."""
    version = f"{path}@{fs.ukey(path)}"
    if version not in _cache:
        with fs.open(path, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            _cache[version] = Content(sha256, _rows(file) if path.endswith(".parquet") else None)
    return _cache[version]


def source_sha256(path: str) -> str:
    """Return the sha256 of a file's content at any fsspec address.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        return version_content(*fsspec.url_to_fs(path)).sha256
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error}). Check the file and its permissions.") from error


def joint_sha256(paths: Iterable[str]) -> str:
    """Return the sha256 over the sha256 of each file, in order; paths and names do not count."""
    return hashlib.sha256("".join(map(source_sha256, paths)).encode()).hexdigest()


def folder_sha256s(fs: fsspec.AbstractFileSystem, folder: str) -> dict[str, str]:
    """Return relative name → sha256 of a folder's files, except hidden ones, which clients of the Hub create."""
    if isinstance(fs, LocalFileSystem):  # its `find` also lists broken links and links to folders
        found = [str(path) for path in Path(folder).rglob("*") if path.is_file()]
    else:
        found = [str(path) for path in fs.find(folder)]
    names = [path[len(folder.rstrip("/")) + 1 :] for path in found]
    return {name: version_content(fs, f"{folder.rstrip('/')}/{name}").sha256 for name in names if not is_hidden(name)}


def content_sha256(files: Mapping[str, str]) -> str:
    """Return the sha256 over names and contents of a folder's files, from `folder_sha256s`."""
    digest = hashlib.sha256()
    for name in sorted(files, key=PurePosixPath):
        digest.update(f"{name}\0{files[name]}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def describe_files(folder: Path) -> dict[str, FileEntry]:
    """Return size and sha256 of every file below `folder` except the manifest, by relative POSIX path.

    A process hashes each version of a file once.
    """
    local = LocalFileSystem()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    return {
        name: FileEntry(size=size, sha256=version_content(local, f"{folder}/{name}").sha256)
        for name, size in sizes.items()
    }


def files_digest(files: Mapping[str, FileEntry]) -> str:
    """Return the sha256 over the names and hashes of files."""
    lines = "\n".join(f"{name} {entry.sha256}" for name, entry in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _rows(file: BinaryIO) -> int | None:
    import pyarrow as pa  # slow to import; training workers use only `file_sha256`
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, ValueError):  # damaged metadata can raise each of these
        return None
