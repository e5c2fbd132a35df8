"""sha256 of files, read in blocks so that size does not matter, and the rows of those that are Parquet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from pathlib import Path

    import fsspec

_BLOCK: Final = 1 << 20


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


def _stream_sha256(file: BinaryIO) -> str:
    """sha256 of what is left in an open file, as 64 hex digits."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """sha256 of a local file."""
    with path.open("rb") as file:
        return _stream_sha256(file)


def version_content(fs: fsspec.AbstractFileSystem, path: str) -> Content:
    """What a file at any fsspec address holds; a process reads each version of a file once."""
    version = f"{path}@{fs.ukey(path)}"
    if version not in _known:
        with fs.open(path, "rb") as file:
            sha256 = _stream_sha256(file)
            _known[version] = Content(sha256, _rows(file) if path.endswith(".parquet") else None)
    return _known[version]


def version_sha256(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """sha256 of a file at any fsspec address; a process reads each version of a file once."""
    return version_content(fs, path).sha256


def _rows(file: BinaryIO) -> int | None:
    import pyarrow as pa  # slow to import; training workers take only `file_sha256`
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, ValueError):  # damaged metadata is of any of these
        return None
