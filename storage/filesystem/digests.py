"""sha256 of files and folders, read in blocks so that size does not matter, and the rows of files that are Parquet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

import fsspec
from fsspec.implementations.local import LocalFileSystem

from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes:
        sha256: 64 hex digits.
        rows: rows by the footer of a file that is called `.parquet`; None of any other, and where the footer is none.
    """

    sha256: str
    rows: int | None


_known: dict[str, Content] = {}  # by file version (fsspec's ukey)


def file_sha256(path: Path) -> str:
    """sha256 of a local file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def version_content(fs: fsspec.AbstractFileSystem, path: str) -> Content:
    """What a file at any fsspec address holds; a process reads each version of a file once."""
    version = f"{path}@{fs.ukey(path)}"
    if version not in _known:
        with fs.open(path, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            _known[version] = Content(sha256, _rows(file) if path.endswith(".parquet") else None)
    return _known[version]


def version_sha256(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """sha256 of a file at any fsspec address; a process reads each version of a file once."""
    return version_content(fs, path).sha256


def source_sha256(path: str) -> str:
    """Return the sha256 of a file's content at any fsspec address.

    Raises:
        SourceError: it cannot be read.
    """
    try:
        return version_sha256(*fsspec.url_to_fs(path))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error}); check the file and its permissions") from error


def joint_sha256(paths: Iterable[str]) -> str:
    """Return the sha256 of the files' own sha256 in order; where they are and what they are called does not count."""
    return hashlib.sha256("".join(map(source_sha256, paths)).encode()).hexdigest()


def folder_sha256s(fs: fsspec.AbstractFileSystem, folder: str) -> dict[str, str]:
    """Return the sha256 of a folder's files by relative name; hidden ones, which clients leave behind, do not count."""
    if isinstance(fs, LocalFileSystem):  # whose `find` lists links to nothing and to folders too
        found = [str(path) for path in Path(folder).rglob("*") if path.is_file()]
    else:
        found = [str(path) for path in fs.find(folder)]
    names = [path[len(folder.rstrip("/")) + 1 :] for path in found]
    shown = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return {name: version_sha256(fs, f"{folder.rstrip('/')}/{name}") for name in shown}


def content_sha256(files: Mapping[str, str]) -> str:
    """Return the sha256 over names and contents of a folder's files, as `folder_sha256s` gives them."""
    digest = hashlib.sha256()
    for name in sorted(files, key=PurePosixPath):
        digest.update(f"{name}\0{files[name]}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _rows(file: BinaryIO) -> int | None:
    import pyarrow as pa  # slow to import; training workers take only `file_sha256`
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, ValueError):  # damaged metadata is of any of these
        return None
