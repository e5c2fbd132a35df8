"""Files and folders that are there as a whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def sync(path: Path) -> None:
    """Flush one file or folder to the disk, so that a rename never outruns its content."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def renamed(source: Path, target: Path) -> bool:
    """Rename a folder; False if the target is taken, or the source has gone: another run was faster."""
    try:
        os.rename(source, target)  # noqa: PTH104 - Path.rename says the same, os.rename is what is atomic
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
            return False
        raise
    return True


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A path beside `target` for a file or folder that takes its place, by one rename, when the block ends well.

    A file that is there is replaced; a folder that holds something must have gone by the end of the block.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as staging:
        made = Path(staging) / target.name
        yield made
        for path in (*made.rglob("*"), made):
            sync(path)
        made.rename(target)
    sync(target.parent)
