"""Files of a commit on the Hub with their digests, saved next to the files in the Hub's cache.

A commit's listing never changes, so a second run, or a run with a copied cache, needs no Hub.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from huggingface_hub.hf_api import RepoSibling

logger = logging.getLogger(__name__)


class HubFile(Record):
    """A file of a commit."""

    size: int
    blob_id: str
    """git's digest; for an LFS file that of its pointer."""
    lfs_sha256: str | None = None
    """sha256 of the content; None unless it is an LFS file."""

    @classmethod
    def of(cls, entry: RepoSibling) -> HubFile:
        """Convert an entry of the Hub's answer, requested with `files_metadata`."""
        return cls(size=entry.size or 0, blob_id=str(entry.blob_id), lfs_sha256=entry.lfs.sha256 if entry.lfs else None)


Listing = dict[str, HubFile]
"""Path → file."""
_LISTING: Final = TypeAdapter(Listing)


def saved_listing(repository: Path, commit: str) -> Listing | None:
    """Return the saved listing of a commit; None if there is none, or if it is damaged."""
    try:
        return _LISTING.validate_json(_path(repository, commit).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.info("%s is ignored: %s", _path(repository, commit), error)
        return None


def save_listing(repository: Path, commit: str, files: Listing) -> None:
    """Save the listing of a commit; a cache without write permission works without it."""
    try:
        with atomic_write(_path(repository, commit)) as file:
            file.write_bytes(_LISTING.dump_json(files, indent=1, exclude_none=True))
    except OSError as error:
        logger.info("the listing of %s is not saved: %s", commit, error)


def _path(repository: Path, commit: str) -> Path:
    """Return the path of a commit's listing in a repository's folder of the Hub's cache."""
    return repository / ".bsl" / commit / "files.json"
