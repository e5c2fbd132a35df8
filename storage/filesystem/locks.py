"""Locks of folders between processes, which end with their process: no clean-up after a kill."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCK: Final = ".lock"


@contextmanager
def try_lock(folder: Path) -> Iterator[bool]:
    """Try to lock an existing folder for this block; yield False at once if another block or process has the lock.

    A file system without locks (some network shares) yields True, as if there were no other process.
    """
    with (folder / _LOCK).open("wb") as file:
        yield _locks(file)


def _locks(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
