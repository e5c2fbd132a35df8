"""Copies on this machine of an object store's artifacts, hashed when they come and before they are used."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fsspec

from storage.artifacts.manifest import describe_files
from storage.errors import CorruptArtifactError
from storage.filesystem.atomic import renamed
from storage.filesystem.digests import version_sha256
from storage.filesystem.os_errors import reading

if TYPE_CHECKING:
    from storage.artifacts.manifest import Manifest

STAGING: Final = ".staging"
"""Where garbage collection finds what a killed process leaves."""


def local_copy(fs: fsspec.AbstractFileSystem, place: str, manifest: Manifest, cache: Path) -> Path:
    """Return a local folder with an artifact's files, copied first if need be.

    Args:
        fs: the store's file system.
        place: the artifact's folder in it.
        manifest: the artifact's manifest.
        cache: folder of the copies.

    Raises:
        CorruptArtifactError: what came is not what the manifest lists.
        StoreReadError: the store does not give a file.
    """
    folder = cache / manifest.ref.path / manifest.digest[:16]
    if not _is_copy(folder, manifest):
        shutil.rmtree(folder, ignore_errors=True)
        for needed in (folder.parent, cache / STAGING):
            needed.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache / STAGING) as staging:
            _copy(fs, place, manifest, Path(staging) / "files")
            renamed(Path(staging) / "files", folder)
    with suppress(OSError):  # another user's copy may be read
        os.utime(folder)  # used now, from which collection tells its age
    return folder


def _copy(fs: fsspec.AbstractFileSystem, place: str, manifest: Manifest, folder: Path) -> None:
    """Bring the files of an artifact to a local folder, and hash what has come."""
    for name in manifest.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with reading(place):
            fs.get_file(f"{place}/{manifest.where(name)}", str(folder / name))
    for name, entry in describe_files(folder).items():
        if entry != manifest.files[name]:
            raise CorruptArtifactError(
                f"{place}/{manifest.where(name)}: what came has sha256 {entry.sha256[:12]}…, manifest says "
                f"{manifest.files[name].sha256[:12]}…; delete {place} and run its stage again"
            )


def _is_copy(folder: Path, manifest: Manifest) -> bool:
    """Whether a local folder holds an artifact's files and no others; each version of a file is hashed once."""
    here = fsspec.filesystem("file")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return names == set(manifest.files) and all(
        version_sha256(here, f"{folder}/{name}") == entry.sha256 for name, entry in manifest.files.items()
    )
