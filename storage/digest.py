"""sha256 of files, read in blocks so that size does not matter."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from pathlib import Path

    import fsspec

_BLOCK: Final = 1 << 20
_known: dict[str, str] = {}  # file version (fsspec's ukey) → sha256


def stream_sha256(file: BinaryIO) -> str:
    """sha256 of what is left in an open file, as 64 hex digits."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """sha256 of a local file."""
    with path.open("rb") as file:
        return stream_sha256(file)


def version_sha256(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """sha256 of a file at any fsspec address; a process reads each version of a file once."""
    version = f"{path}@{fs.ukey(path)}"
    if version not in _known:
        with fs.open(path, "rb") as file:
            _known[version] = stream_sha256(file)
    return _known[version]
