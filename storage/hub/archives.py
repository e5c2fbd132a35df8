"""Files inside an archive of a Hub repository: it is fetched once, and what is wanted of it unpacked beside it.

A file is written under the name that it was asked for by, never under the archive's, so no archive can write elsewhere.
"""

from __future__ import annotations

import shutil
import tarfile
from typing import TYPE_CHECKING

from storage.errors import HubError, SourceError
from storage.filesystem.atomic import whole
from storage.hub.repositories import fetch, listing, snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def archived_files(
    hub_id: str, revision: str | None, archive: str, wanted: Sequence[str], cache: Path | None = None
) -> tuple[Path, ...]:
    """Local copies of an archive's files, in the order asked for; fetched and unpacked if they are not here.

    Raises:
        HubError: the Hub does not give the archive, or it is no tar file.
        SourceError: one of the files is not in it.
    """
    listed = listing("dataset", hub_id, revision, cache)
    address = f"{hub_id}@{listed.commit[:12]}: {archive}"
    if archive not in listed.files:
        raise HubError(f"{address}: the repository has no such file", "give the set's own files by a mirror")
    folder = _unpacked(hub_id, listed.commit, archive, cache)
    lacking = [name for name in wanted if not (folder / name).is_file()]
    if lacking:
        _unpack(fetch("dataset", hub_id, listed, [archive], cache) / archive, lacking, folder, address)
    return tuple(folder / name for name in wanted)


def check_archived(
    hub_id: str, revision: str | None, archive: str, wanted: Sequence[str], cache: Path | None = None
) -> bool:
    """Whether files of an archive, or the archive, are here; if not, the Hub has said that it has the repository.

    Raises:
        SourceError: the Hub has no such repository, or does not answer.
    """
    commit = listing("dataset", hub_id, revision, cache).commit
    folder = _unpacked(hub_id, commit, archive, cache)
    packed = snapshot("dataset", hub_id, commit, cache) / archive
    return packed.exists() or all((folder / name).is_file() for name in wanted)


def _unpacked(hub_id: str, commit: str, archive: str, cache: Path | None) -> Path:
    return snapshot("dataset", hub_id, commit, cache).parents[1] / ".bsl" / commit / archive


def _unpack(packed: Path, wanted: Sequence[str], folder: Path, address: str) -> None:
    try:
        with tarfile.open(packed) as tar:
            members = {member.name.removeprefix("./"): member for member in tar if member.isfile()}
            for name in wanted:
                # Some pack the folder, some what is in it.
                held = [member for known, member in members.items() if f"/{known}".endswith(f"/{name}")]
                content = tar.extractfile(held[0]) if held else None
                if content is None:
                    raise SourceError(f"{address} holds {len(members)} files but no {name}", "give it by a mirror")
                with content, whole(folder / name) as path, path.open("wb") as file:
                    shutil.copyfileobj(content, file)
    except (tarfile.TarError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise HubError(f"{address} cannot be unpacked ({reason})", f"delete {packed} and run again") from error
