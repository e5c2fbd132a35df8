"""A mirror's copy of a model: known by the Hub's name where the record says so, used where it lies or copied first.

On an object store nothing is copied before somebody asks for the folder, and each file is held against its sha256.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import fsspec
from fsspec.implementations.local import LocalFileSystem
from pydantic import BaseModel, ConfigDict

from storage.errors import SourceError
from storage.filesystem.atomic import whole
from storage.filesystem.digests import file_sha256, version_sha256
from storage.filesystem.names import is_inside
from storage.filesystem.urls import reachable
from storage.hub.models import says_how
from storage.hub.repositories import COMMIT
from storage.sources.mirror_record import RECORD, model_origin, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

logger = logging.getLogger(__name__)

SAYS: Final = ("config.json", "modules.json")  # a model's folder has one of them


class MirroredModel(BaseModel):
    """A model's folder on a mirror."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    address: str
    """Where its folder is."""
    origin: str | None = None
    """`<hub id>@<commit>`, if the mirror's record says it of all its files."""
    files: dict[str, str]
    """Its files by relative name, each with its sha256."""
    cache: Path | None = None
    """Where a copy is kept; `~/.cache/bsl` if None."""

    @property
    def identity(self) -> str:
        """Its origin, else its content as a local folder is named by it."""
        return self.origin or f"sha256:{content_sha256(self.files)}"

    def fetched(self, *, settings_only: bool = False) -> Path:
        """A local folder with its files; without weights if only settings are wanted.

        Raises:
            SourceError: a file cannot be copied, or is not as it was written.
        """
        fs, root = fsspec.url_to_fs(self.address)
        if isinstance(fs, LocalFileSystem):
            return Path(root).resolve()
        folder = self._copies
        for name in [name for name in self.files if not (folder / name).is_file()]:
            if settings_only and not says_how(name, fs.size(f"{root}/{name}")):
                continue
            with reachable(f"{self.address}/{name}"), whole(folder / name) as path:
                fs.get_file(f"{root}/{name}", str(path))
                if file_sha256(path) != self.files[name]:
                    raise SourceError(
                        f"{self.address}/{name} came with sha256 {file_sha256(path)[:12]}…, expected "
                        f"{self.files[name][:12]}…; copy the mirror again"
                    )
        return folder

    def check(self) -> bool:
        """Whether its files are on this machine; if not, the mirror has said that it has them."""
        if isinstance(fsspec.url_to_fs(self.address)[0], LocalFileSystem):
            return True
        return all((self._copies / name).is_file() for name in self.files)

    @property
    def _copies(self) -> Path:
        return (self.cache or Path.home() / ".cache" / "bsl") / "models" / content_sha256(self.files)[:16]


def find_mirrored(mirror: str, hub_id: str, revision: str | None, cache: Path | None) -> MirroredModel | None:
    """A mirror's copy of a model, if it has one.

    Args:
        mirror: folder or fsspec address.
        hub_id: `organisation/name`.
        revision: a commit that the copy must not contradict; a branch or tag may be any.
        cache: where a copy of an object store's files goes.

    Raises:
        SourceError: the mirror cannot be looked at or has another revision, a file is not as it was written, or a
            name leads out of the model's folder.
    """
    with reachable(mirror):
        fs, root = fsspec.url_to_fs(mirror)
        inside = f"models/{hub_id}/"
        folder = f"{root.rstrip('/')}/{inside}".rstrip("/")
        if not fs.isdir(folder):
            return None
        _check_revision(mirror, hub_id, revision)
        address = str(fs.unstrip_protocol(folder))
        recorded = {name: entry for name, entry in read_record(mirror).items() if name.startswith(inside)}
        origins = {entry.origin for entry in recorded.values()}
        if len(origins) != 1 or COMMIT.fullmatch(next(iter(origins)).removeprefix(f"{hub_id}@")) is None:
            files = folder_sha256s(fs, folder)
            _check_names(address, files)
            check_model(address, files)
            return MirroredModel(address=address, files=files, cache=cache)
        files = {name.removeprefix(inside): entry.sha256 for name, entry in recorded.items()}
        _check_names(address, files)
        origin = origins.pop()
        for name, sha256 in files.items():
            if (fault := _fault(fs, f"{folder}/{name}", sha256)) is not None:
                place = f"{mirror.rstrip('/')}/{inside}"
                raise SourceError(
                    f"{place}{name} {fault} for {origin}; delete {place} and copy it "
                    "again, or give the folder by its path"
                )
        return MirroredModel(address=address, origin=origin, files=files, cache=cache)


def folder_sha256s(fs: fsspec.AbstractFileSystem, folder: str) -> dict[str, str]:
    """sha256 of a folder's files by relative name; hidden ones, which clients leave behind, do not count."""
    if isinstance(fs, LocalFileSystem):  # whose `find` lists links to nothing and to folders too
        found = [str(path) for path in Path(folder).rglob("*") if path.is_file()]
    else:
        found = [str(path) for path in fs.find(folder)]
    names = [path[len(folder.rstrip("/")) + 1 :] for path in found]
    shown = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return {name: version_sha256(fs, f"{folder.rstrip('/')}/{name}") for name in shown}


def content_sha256(files: Mapping[str, str]) -> str:
    """sha256 over names and contents of a folder's files."""
    digest = hashlib.sha256()
    for name in sorted(files, key=PurePosixPath):
        digest.update(f"{name}\0{files[name]}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _check_names(address: str, names: Iterable[str]) -> None:
    """Refuse names that would be written elsewhere than below the copy: an object store takes any."""
    for name in names:
        if not is_inside(name):
            raise SourceError(
                f"{address}: the name {name!r:.80} of a file leads out of the folder, expected a relative one without "
                f"empty parts, . and ..; take the file and its line in {RECORD} away, and ask who wrote them"
            )


def check_model(address: str, names: Iterable[str]) -> None:
    """Refuse a folder of files by these relative names that is no model's.

    Raises:
        SourceError: naming what it holds.
    """
    tops = {name.partition("/")[0] for name in names}
    if not tops.intersection(SAYS):
        held = ", ".join(sorted(tops)[:10]) or "nothing"
        raise SourceError(
            f"{address} is no model: it holds {held}, expected {' or '.join(SAYS)}; give the folder of a saved model"
        )


def _fault(fs: fsspec.AbstractFileSystem, path: str, sha256: str) -> str | None:
    """What is wrong with a file that a record describes; an object store's bytes are looked at when they are copied."""
    if not fs.isfile(path):
        return f"is missing, which {RECORD} lists"
    found = version_sha256(fs, path) if isinstance(fs, LocalFileSystem) else sha256
    return None if found == sha256 else f"has sha256 {found[:12]}…, {RECORD} says {sha256[:12]}…"


def _check_revision(mirror: str, hub_id: str, revision: str | None) -> None:
    """Refuse a mirror's model of another commit than asked for; warn where nothing says which commit it is."""
    if revision is None or not COMMIT.fullmatch(revision):
        return
    origin = model_origin(mirror, hub_id)
    if origin is None or not origin.startswith(f"{hub_id}@"):
        logger.warning(
            "%s: %s does not say which revision %s is; %s is taken on trust", mirror, RECORD, hub_id, revision
        )
    elif origin != f"{hub_id}@{revision}":
        raise SourceError(
            f"{mirror.rstrip('/')}/models/{hub_id} is {origin}, expected revision {revision}; delete the folder, or "
            "ask for its own revision"
        )
