"""A model in the folder of one's own files (BSL_DATA_MIRROR): used where it is, or copied from an object store first.

It is known by its content. On an object store nothing is copied before its folder is asked for.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fsspec
from fsspec.implementations.local import LocalFileSystem
from pydantic import BaseModel, ConfigDict

from storage.errors import SourceError
from storage.filesystem.atomic import whole
from storage.filesystem.digests import content_sha256, file_sha256, folder_sha256s
from storage.filesystem.names import is_inside
from storage.filesystem.urls import reachable
from storage.hub.models import says_how

if TYPE_CHECKING:
    from collections.abc import Iterable

logger = logging.getLogger(__name__)

SAYS: Final = ("config.json", "modules.json")  # a model's folder has one of them


class MirroredModel(BaseModel):
    """A model's folder on a mirror."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    address: str
    """Where its folder is."""
    files: dict[str, str]
    """Its files by relative name, each with its sha256."""
    cache: Path | None = None
    """Folder of the copy; `~/.cache/bsl` if None."""

    @property
    def identity(self) -> str:
        """Its content, by which a local folder is named too."""
        return f"sha256:{content_sha256(self.files)}"

    def fetched(self, *, settings_only: bool = False) -> Path:
        """A local folder with its files; without weights if only settings are wanted.

        Raises:
            SourceError: a file cannot be copied, or has changed since it was found.
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
                    raise SourceError(f"{self.address}/{name} has changed while it was copied; run again")
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
        revision: what is asked for; which one the copy is, no file says.
        cache: where a copy of an object store's files goes.

    Raises:
        SourceError: the mirror cannot be looked at, its folder is no model's, or a name leads out of the folder.
    """
    with reachable(mirror):
        fs, root = fsspec.url_to_fs(mirror)
        folder = f"{root.rstrip('/')}/models/{hub_id}"
        if not fs.isdir(folder):
            return None
        address, files = str(fs.unstrip_protocol(folder)), folder_sha256s(fs, folder)
    for name in files:
        if not is_inside(name):  # an object store takes any
            raise SourceError(
                f"{address}: the name {name!r:.80} of a file leads out of the folder, expected a relative one without "
                "empty parts, . and ..; delete the file, and ask who wrote it"
            )
    check_model(address, files)
    if revision is not None:
        logger.warning("%s is taken on trust as revision %s", address, revision)
    return MirroredModel(address=address, files=files, cache=cache)


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
