"""sha256 of files, read in blocks so that size does not matter."""

import hashlib
from pathlib import Path
from typing import BinaryIO, Final

_BLOCK: Final = 1 << 20


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
