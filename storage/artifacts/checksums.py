"""What an object store keeps beside a file, so that asking costs a request and not the file.

S3 computes a SHA-256 of a whole object only where it came in one piece, which files above some hundred megabytes do
not. So the SHA-256 that the publisher took goes up as the object's own metadata (as rclone keeps its MD5): in one act
with the bytes, which the client guards with a checksum of its own on the way. An object that is written anew loses it,
and is hashed; a copy to another bucket takes it along. Of other stores nothing is known, and every file is hashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    import fsspec

    from storage.artifacts.manifest import FileEntry

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
