"""Write files and folders atomically: they appear whole or not at all.

models/ uses this module too, for caches and snapshots, so it imports nothing of this project.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAKING: Final = ".making-"
_KILLED_S: Final = 86_400.0  # after so many seconds without a change, the writing process counts as killed


def sync(path: Path) -> None:
    """Flush one file or folder to the disk, so that its content is there before it is renamed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def renamed(source: Path, target: Path) -> bool:
    """Rename a folder; return False if the target exists or the source is gone, because another run was faster."""
    try:
        os.rename(source, target)  # noqa: PTH104 - os.rename is the documented atomic operation
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
            return False
        raise
    return True


@contextmanager
def whole(target: Path, *, first_stays: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the target's folder; rename it to `target` if the block succeeds.

    After an error nothing remains. An existing file is replaced.

    Args:
        target: path of the file or folder to write; its parents are created if needed.
        first_stays: whether an existing folder at `target` stays and the new one is dropped, for processes that write
            the same content.

    Raises:
        OSError: it cannot be written, or a non-empty folder is at `target`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _forget_killed(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=_MAKING) as staging:
        made = Path(staging) / target.name
        yield made
        for path in (*made.rglob("*"), made):
            sync(path)
        if not (first_stays and target.is_dir()):
            try:
                made.rename(target)
            except OSError as error:
                if not first_stays or error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
    sync(target.parent)


def last_changed(folder: Path) -> float:
    """Return the time of the last change in a folder, in seconds; infinity if the folder has been deleted."""
    try:
        inside = () if folder.is_symlink() else folder.rglob("*")
        return max(float(path.lstat().st_mtime) for path in (folder, *inside))
    except FileNotFoundError:
        return float("inf")


def _forget_killed(folder: Path) -> None:
    """Remove files left by processes that were killed long ago."""
    for left in folder.glob(f"{_MAKING}*"):
        if time.time() - last_changed(left) > _KILLED_S:
            shutil.rmtree(left, ignore_errors=True)
