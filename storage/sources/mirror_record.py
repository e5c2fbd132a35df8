"""What `mirror.json` says of a mirror's files: where each came from, and its sha256."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import fsspec
from fsspec.implementations.local import LocalFileSystem
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from storage.errors import SourceError
from storage.filesystem.digests import version_sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RECORD: Final = "mirror.json"
_AT_COMMIT: Final = re.compile(r"([^@]+)@([0-9a-f]{40})(?=/|$)")


class MirroredFile(BaseModel):
    """What is known of one file of a mirror."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


_ENTRIES: Final = TypeAdapter(dict[str, MirroredFile])


def read_record(mirror: str) -> dict[str, MirroredFile]:
    """The entries of a mirror by relative path; none if it was filled by hand.

    Raises:
        SourceError: there is a `mirror.json` that is no such record.
    """
    fs, root = fsspec.url_to_fs(mirror)
    path = f"{root.rstrip('/')}/{RECORD}"
    try:
        return _ENTRIES.validate_json(fs.cat_file(path)) if fs.isfile(path) else {}
    except ValidationError as error:
        raise SourceError(
            f"{path} is no record of a mirror ({str(error).splitlines()[0]}); restore or delete it"
        ) from error


def model_origin(mirror: str, hub_id: str) -> str | None:
    """Where a mirror's model came from, as `<hub id>@<commit>` if from the Hub; None if the record does not say."""
    inside = f"models/{hub_id}/"
    return next((entry.origin for name, entry in read_record(mirror).items() if name.startswith(inside)), None)


def name_in(mirror: str, path: str) -> str | None:
    """A file's path relative to a mirror; None if it lies elsewhere.

    However the two are spelled: files that were found by a pattern are named absolutely, whatever the mirror is called.
    """
    (fs, root), (other, name) = fsspec.url_to_fs(mirror), fsspec.url_to_fs(path)
    if type(fs) is not type(other):
        return None
    normal = os.path.normpath if isinstance(fs, LocalFileSystem) else str
    folder, place = PurePosixPath(normal(root)), PurePosixPath(normal(name))
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else None


def origin_of(paths: Sequence[str], mirror: str, wanted: str) -> str | None:
    """The Hub's table or archive that a mirror's files are copies of, by its record; None if of another origin.

    Args:
        paths: the files.
        mirror: where they lie.
        wanted: `<hub id>@<commit>` that they must not contradict; a branch or tag may be any.

    Raises:
        SourceError: a file is not as it was written, or of another commit than wanted.
    """
    origins = {_mirrored_from(path, mirror) for path in paths}
    origin = origins.pop() if len(origins) == 1 else None
    if origin is not None:
        check_commit(paths[0], origin, wanted)
    return origin


def check_commit(path: str, origin: str, wanted: str) -> None:
    """Hold what a record says of a mirror's file against the commit that is wanted.

    Raises:
        SourceError: it is of another commit of the same repository.
    """
    theirs, ours = _AT_COMMIT.match(origin), _AT_COMMIT.match(wanted)
    if theirs and ours and theirs[1] == ours[1] and theirs[2] != ours[2]:
        raise SourceError(
            f"{path} is of {theirs[0]}, expected revision {ours[2]}; delete the file, or set `revision` "
            "to the folder's own"
        )


def _mirrored_from(path: str, mirror: str) -> str | None:
    if (name := name_in(mirror, path)) is None:
        return None
    entry = read_record(mirror).get(name)
    if entry is None or "@" not in entry.origin:
        return None
    if (found := source_sha256(path)) != entry.sha256:
        raise SourceError(
            f"{path}: sha256 {found[:12]}…, {RECORD} says {entry.sha256[:12]}… for {entry.origin}; copy it again, "
            "or give it as a `path`"
        )
    return entry.origin


def source_sha256(path: str) -> str:
    """sha256 of a file's content, wherever it lies.

    Raises:
        SourceError: it cannot be read.
    """
    try:
        return version_sha256(*fsspec.url_to_fs(path))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error}); check the file and its permissions") from error


def joint_sha256(paths: Iterable[str]) -> str:
    """sha256 of the files' own sha256 in order; where they are and what they are called does not count."""
    return hashlib.sha256("".join(map(source_sha256, paths)).encode()).hexdigest()
