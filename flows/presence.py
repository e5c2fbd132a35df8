"""Whether another command uses this folder's Prefect database now.

A command holds a shared lock on one file for as long as it lives; the system takes it back, whatever ends the command.
A command that can lock the file for itself, for a moment, knows that none of the runs in the database has a process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def enter(folder: Path, *, inherited: bool = False) -> bool:
    """Be present until this process ends.

    Args:
        folder: with the database.
        inherited: whether a program that takes this process's place (`exec`) stays present.

    Returns:
        Whether nobody else is; False where the file system knows no locks.
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
