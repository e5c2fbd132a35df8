"""The folder of local copies (BSL_CACHE): content that this machine can fetch or make again.

It is often not writable: containers and batch systems have a read-only home folder or none. Then the default is a
folder of this user in the system's temporary folder; a folder that was given is an error, because it was chosen.
"""

from __future__ import annotations

import functools
import logging
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.storage.errors import StoreWriteError
from bsl.storage.filesystem.os_errors import explain_full_disk, writing

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

VARIABLE: Final = "BSL_CACHE"


def cache_folder(given: Path | None) -> Path:
    """Return the folder of local copies: as given, else `bsl` in XDG_CACHE_HOME or ~/.cache, else a temporary one.

    Raises:
        StoreWriteError: None was given, and neither the default nor the temporary folder can be written.
    """
    return given or _default_folder(_usual_folder())


def copy_folder(given: Path | None, *parts: str) -> Path:
    """Return the path of a copy, which may exist in a default folder that can only be read."""
    usual = given or _usual_folder()
    if usual is not None and usual.joinpath(*parts).is_dir():
        return usual.joinpath(*parts)
    return cache_folder(given).joinpath(*parts)


@contextmanager
def filling(copy: Path) -> Iterator[None]:
    """Write a copy in this block; the errors about its folder name the variable that changes it.

    Raises:
        StoreWriteError: The folder is read-only, not permitted or full.
    """
    _probe(copy.parent)
    with explain_full_disk(named(copy)):
        yield


def named(folder: Path) -> str:
    """Return a folder of copies as messages name it."""
    return f"{folder} ({VARIABLE})"


@functools.cache  # one warning
def _default_folder(usual: Path | None) -> Path:
    reason = "there is no home folder"
    if usual is not None:
        try:
            _probe(usual)
        except StoreWriteError as error:
            reason = str(error.__cause__)
        else:
            return usual
    temporary = _temporary_folder("bsl-cache", VARIABLE)
    logger.warning(
        "local copies are written to %s (%s). To keep them elsewhere, set %s to a folder", temporary, reason, VARIABLE
    )
    return temporary


def have_home() -> None:
    """Set HOME to a temporary folder of this user where there is none, because libraries fail without one.

    Raises:
        StoreWriteError: There is no temporary folder either.
    """
    if not os.environ.get("HOME"):
        os.environ.pop("HOME", None)  # empty, it would be the root of the file system
        try:
            Path.home()
        except RuntimeError:  # no entry in /etc/passwd
            os.environ["HOME"] = str(_temporary_folder("bsl-home", "HOME"))
            logger.warning("there is no home folder; this command uses %s. Set HOME to a folder", os.environ["HOME"])


def _temporary_folder(name: str, variable: str) -> Path:
    """Return a folder of this user in the system's temporary folder."""
    with writing(f"a temporary folder (TMPDIR; {variable} names another)"):
        folder = Path(tempfile.gettempdir()) / f"{name}-{os.geteuid()}"
    _probe(folder, variable)
    if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
        raise StoreWriteError(f"{folder}: belongs to another user. Set {variable} to a folder of your own.")
    return folder


def _usual_folder() -> Path | None:
    """Return the default folder; None without a home folder."""
    try:
        xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "bsl"
    except RuntimeError:
        return None


def _probe(folder: Path, variable: str = VARIABLE) -> None:
    """Create a folder and a file in it; permission bits do not show all obstacles."""
    with writing(f"{folder} ({variable})"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.TemporaryFile(dir=folder).close()
