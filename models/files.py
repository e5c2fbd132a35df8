"""Files and folders that appear on disk whole or not at all, and what is in them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNFINISHED = "unfinished-"


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a place beside `path` for a file or folder, which becomes `path` by a rename once it is on disk.

    Several processes may write the same content at once: a file replaces an earlier one, a folder leaves an earlier one
    in its place. After an error nothing stays.

    Args:
        path: What is to be written; its parents are made if needed.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")
    try:
        yield unfinished
        for part in (*unfinished.rglob("*"), unfinished):
            flush(part)
        try:
            unfinished.replace(path)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:  # a folder that holds files cannot be replaced
                raise
        flush(path.parent)
    finally:
        if unfinished.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
        else:
            unfinished.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to disk: a rename alone may outlive the data it names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hex digits, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
