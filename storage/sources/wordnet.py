"""Where the WordNet database lies on this machine, and an identity that is the same on every machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from storage.artifacts.keys import NotInKey
from storage.errors import SourceError
from storage.filesystem.digests import file_sha256
from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

_SYSTEM: Final = (Path("/usr/share/wordnet"), Path("/usr/local/share/wordnet"))  # where packages put it
_MARK: Final = "data.noun"


class ResolvedWordNet(Record):
    """A WordNet database that was found."""

    folder: Annotated[Path, NotInKey]
    """Local folder with its index, data and exception files."""
    identity: str
    """`sha256:…` over those files; belongs into artifact keys."""


def find_wordnet(files: tuple[str, ...], folders: tuple[Path, ...] | None = None) -> ResolvedWordNet:
    """Find the database among nltk's data or where the system's package installs it.

    Args:
        files: Names of the files that must be there; they make the identity.
        folders: Where to look; nltk's and the system's places unless given.

    Raises:
        SourceError: it is nowhere, or files are missing; with the command that installs it.
    """
    tried = tuple(_folders()) if folders is None else folders
    folder = next((folder for folder in tried if (folder / _MARK).is_file()), None)
    remedy = "install it by `apt-get install wordnet-base` or `python -m nltk.downloader wordnet` (then unzip it)"
    if folder is None:
        raise SourceError(f"no WordNet database ({_MARK}) in {', '.join(map(str, tried))}; {remedy}")
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise SourceError(f"{folder} holds a WordNet database without {', '.join(missing)}; {remedy}")
    digests = "".join(f"{name}\0{file_sha256(folder / name)}\0" for name in files)
    return ResolvedWordNet(folder=folder, identity=f"sha256:{hashlib.sha256(digests.encode()).hexdigest()}")


def _folders() -> Iterator[Path]:
    import nltk.data

    for place in nltk.data.path:
        yield Path(place) / "corpora" / "wordnet"
    yield from _SYSTEM
