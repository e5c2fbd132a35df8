"""Turn errors of the operating system and of object-store clients into errors that name a remedy.

Clients of object stores raise errors without a common base class (no credentials, no route to the host). So these
blocks treat every error except this package's own as a refusal, and must contain only file-system calls.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bsl.storage.errors import StorageError, StoreReadError, StoreWriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

_NOT_WRITTEN: Final = {
    errno.ENOSPC: "the disk is full. Free space or choose another folder.",
    errno.EDQUOT: "the disk quota is used up. Free space or choose another folder.",
    errno.EFBIG: "a file would exceed `ulimit -f` or the file system. Raise the limit or choose another folder.",
    errno.EROFS: "the file system is read-only. Choose a writable folder.",
    errno.EACCES: "writing is not permitted. Choose a writable folder or correct the permissions.",
    errno.EPERM: "writing is not permitted. Choose a writable folder or correct the permissions.",
    errno.ENOTDIR: "a part of the path is a file, not a folder. Choose another folder.",
    errno.EEXIST: "a part of the path is a file, not a folder. Choose another folder.",
}
_NOT_READ: Final = {
    errno.EACCES: "reading is not permitted. Correct the permissions, or the credentials of this process.",
    errno.EPERM: "reading is not permitted. Correct the permissions, or the credentials of this process.",
}


def reading(where: object) -> AbstractContextManager[None]:
    """Turn a refusal to read into an error with a remedy; a missing file passes unchanged.

    Raises:
        StoreReadError: names the location and the remedy.
    """
    passing = (StorageError, FileNotFoundError, NotADirectoryError)
    return translated(lambda error: StoreReadError(f"cannot read {where}: {_cause(error, _NOT_READ)}"), passing)


def writing(where: object) -> AbstractContextManager[None]:
    """Turn a refusal to write into an error with a remedy.

    Raises:
        StoreWriteError: names the location and the remedy. Published artifacts are unchanged.
    """
    return translated(lambda error: StoreWriteError(f"cannot write to {where}: {_cause(error, _NOT_WRITTEN)}"))


def explain_full_disk(where: object) -> AbstractContextManager[None]:
    """Turn any library's error about a full or read-only disk into a `StoreWriteError`; other errors pass unchanged."""

    def fault(error: Exception) -> StoreWriteError | None:
        why = not_written(error)
        return StoreWriteError(f"cannot write to {where}: {why}") if why else None

    return translated(fault, (StoreWriteError,))


def check_umask() -> None:
    """Check that this process can read and write the files that it makes.

    Raises:
        StoreWriteError: its umask removes rights of their owner.
    """
    mask = os.umask(0o077)
    os.umask(mask)
    if mask & stat.S_IRWXU:
        raise StoreWriteError(
            f"umask {mask:03o}: new files would lack rights of their owner (expected 0 as the first digit). "
            "Run `umask 022`, or `umask 077` for private files."
        )


@contextmanager
def translated(
    fault_of: Callable[[Exception], StorageError | None], passing: tuple[type[Exception], ...] = (StorageError,)
) -> Iterator[None]:
    """Raise the error of this package that `fault_of` returns for an error in the block.

    Args:
        fault_of: Returns None for an error that passes unchanged.
        passing: Classes of errors that pass unchanged.
    """
    try:
        yield
    except passing:
        raise
    except Exception as error:
        if (fault := fault_of(error)) is None:
            raise
        raise fault from error


def _cause(error: Exception, known: Mapping[int, str]) -> str:
    return known.get(_number_of(error), f"{first_line(error)}. Check that this location can be reached, and run again.")


def not_written(error: Exception) -> str:
    """Return the reason and remedy if an error is about a full or read-only disk or a size limit, else ""."""
    number = _number_of(error)
    return _NOT_WRITTEN[number] if number in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS} else ""


def message_of(error: BaseException) -> str:
    """Return an error's message, or the name of its class if it has no message."""
    return str(error).strip() or type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of `message_of`."""
    return message_of(error).splitlines()[0]


def _number_of(error: Exception) -> int:
    """Return the operating system's error number; Polars only has it in the message (`… (os error 28)`)."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    spelled = re.search(r"os error (\d+)", str(error))
    return int(spelled[1]) if spelled else 0
