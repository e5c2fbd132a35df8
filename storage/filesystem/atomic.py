"""Files and folders that are there as a whole or not at all.

Networks write their caches and snapshots as the store writes artifacts, so this room is open to models/ too: it imports
nothing of this project but its errors.
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
_KILLED_S: Final = 86_400.0  # without a change in what is being made, its process is taken for dead


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
def whole(target: Path, *, first_stays: bool = False) -> Iterator[Path]:
    """Yield a path beside `target` for a file or folder, which becomes `target` by one rename when the block ends well.

    After an error nothing stays. A file that is there is replaced.

    Args:
        target: what is to be written; its parents are made if needed.
        first_stays: whether a folder at `target` stays and this one is dropped: processes that make the same content.

    Raises:
        OSError: it cannot be written, or a folder that holds something is at `target`.
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
    """When anything in a folder was last changed, in seconds; never, if it has gone meanwhile."""
    try:
        inside = () if folder.is_symlink() else folder.rglob("*")
        return max(float(path.lstat().st_mtime) for path in (folder, *inside))
    except FileNotFoundError:
        return float("inf")


def _forget_killed(folder: Path) -> None:
    """Remove what processes that were killed long ago had made there."""
    for left in folder.glob(f"{_MAKING}*"):
        if time.time() - last_changed(left) > _KILLED_S:
            shutil.rmtree(left, ignore_errors=True)
