"""A lock file that tells whether another command uses this folder's Prefect database.

Each command holds a shared lock until its process ends, by kill -9 too. A command that gets the exclusive lock for a
moment is the only one: no run in the database has a process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def hold(folder: Path, *, inherited: bool = False) -> bool:
    """Hold the shared lock until this process ends.

    Args:
        folder: the folder of the database.
        inherited: whether a program that replaces this process (`exec`) keeps the lock.

    Returns:
        Whether no other process holds it; False on a file system without locks.
    """
    file = os.open(folder / "commands.lock", os.O_RDWR | os.O_CREAT, 0o644)  # never closed
    os.set_inheritable(file, inherited)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH)
    return alone
