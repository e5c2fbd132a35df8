"""Write files and folders atomically: a reader sees the complete file or none.

models/ uses this module too, for caches and snapshots, so it imports nothing from this project.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAKING: Final = ".making-"
_KILLED_S: Final = 86_400.0  # after this time without a change, the writing process counts as killed


def sync(path: Path) -> None:
    """Flush a file or folder to the disk, as needed before a rename."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def renamed(source: Path, target: Path) -> bool:
    """Rename a folder; return False if another run was faster (the target exists, or the source does not)."""
    try:
        os.rename(source, target)  # noqa: PTH104 - os.rename is the documented atomic operation
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
            return False
        raise
    return True


@contextmanager
def atomic_write(target: Path, *, keep_existing: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the target's folder; rename it to `target` if the block succeeds.

    After an error or SIGTERM nothing remains; kill -9 leaves a folder that a later write removes after a day. An
    existing file is replaced.

    Args:
        target: path of the file or folder to write; its parents are created if needed.
        keep_existing: keep an existing folder at `target` and discard the new one, for processes that write the same
            content.

    Raises:
        OSError: it cannot be written, or a non-empty folder is at `target`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _forget_killed(target.parent)
    with _unwound_by_sigterm(), tempfile.TemporaryDirectory(dir=target.parent, prefix=_MAKING) as staging:
        staged = Path(staging) / target.name
        yield staged
        for path in (*staged.rglob("*"), staged):
            sync(path)
        if not (keep_existing and target.is_dir()):
            try:
                staged.rename(target)
            except OSError as error:
                if not keep_existing or error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
    sync(target.parent)


class _Terminated(BaseException):
    """SIGTERM inside a block that has files to remove."""


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """Leave the block at SIGTERM by an exception, so that its files are removed, and then end as by default.

    A process with a handler of its own, such as a Prefect run, keeps it.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    received = False

    def unwind(_signal: int, _frame: object) -> None:
        nonlocal received
        received = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the removal
        raise _Terminated

    try:
        signal.signal(signal.SIGTERM, unwind)
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if received:
            signal.raise_signal(signal.SIGTERM)


def last_changed(folder: Path) -> float:
    """Return the time of the last change below a folder, in seconds; infinity if the folder does not exist."""
    try:
        inside = () if folder.is_symlink() else folder.rglob("*")
        return max(float(path.lstat().st_mtime) for path in (folder, *inside))
    except FileNotFoundError:
        return float("inf")


def _forget_killed(folder: Path) -> None:
    """Remove the files of processes that were killed long ago."""
    for leftover in folder.glob(f"{_MAKING}*"):
        if time.time() - last_changed(leftover) > _KILLED_S:
            shutil.rmtree(leftover, ignore_errors=True)
