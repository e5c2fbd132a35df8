"""Hub repositories: resolve a revision to a commit, list its files, and fetch them into the Hub's own cache.

Design choices
- A commit's listing never changes, so it is cached in the place of `snapshot_download` (`trees/<commit>.json`), as is a
  branch's commit (`refs/`). With both, a second run or a copied cache needs no Hub.
- Every file is compared with its listed digest: a proxy's error page has the right name, and often the right size.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from storage.errors import HubError, HubSilentError, SourceError
from storage.filesystem.atomic import whole
from storage.filesystem.digests import file_sha256
from storage.hub.faults import CHANGED, retried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from huggingface_hub._tree_cache import TreeCacheEntry

logger = logging.getLogger(__name__)

Kind = Literal["model", "dataset"]
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
SECONDS_TO_ANSWER: Final = 10.0


class Listing(NamedTuple):
    """A repository at a commit.

    Attributes:
        commit: Full commit.
        files: Path → size and digests, as in the Hub client's cache.
    """

    commit: str
    files: dict[str, TreeCacheEntry]


def pinned(kind: Kind, name: str, revision: str | None, cache: Path | None = None) -> str:
    """Return the commit of a revision; without the Hub, the commit that it meant last, by any program's cache.

    Args:
        kind: `model` or `dataset`.
        name: `organisation/name`.
        revision: commit, branch or tag; `main` if None. A full commit is returned unchanged.
        cache: the Hub's cache; HF_HUB_CACHE if None.

    Raises:
        HubError: it has no such repository or commit, refuses it, or does not answer and the cache has none.
        SourceError: HF_HUB_OFFLINE forbids the request, and the cache has none.
    """
    wanted = revision or "main"
    if COMMIT.fullmatch(wanted):
        return wanted
    ref = _folder(kind, name, cache) / "refs" / wanted
    try:
        commit = ask(kind, name, wanted, cache).commit
    except SourceError as error:
        if not ref.is_file() or (isinstance(error, HubError) and not isinstance(error, HubSilentError)):
            raise
        commit = ref.read_text().strip()
        logger.warning("%s@%s is taken as %s, which it meant last: %s", name, wanted, commit, error.finding)
        return commit
    with whole(ref) as made:
        made.write_text(commit, encoding="utf-8")
    return commit


def listing(kind: Kind, name: str, revision: str | None, cache: Path | None = None) -> Listing:
    """Return a repository's files at a revision; arguments and errors as for `pinned`. A known commit needs no Hub."""
    commit = pinned(kind, name, revision, cache)
    return _known(kind, name, commit, cache) or ask(kind, name, commit, cache)


def snapshot(kind: Kind, name: str, commit: str, cache: Path | None = None) -> Path:
    """Return the cache folder of a commit's files, complete or not."""
    return _folder(kind, name, cache) / "snapshots" / commit


def fetch(kind: Kind, name: str, listed: Listing, wanted: Sequence[str], cache: Path | None = None) -> Path:
    """Download the wanted files of a commit that are not in the cache.

    Returns:
        The folder with the files.

    Raises:
        HubError: the Hub does not deliver a file, or its bytes differ from the listing.
        SourceError: HF_HUB_OFFLINE forbids the request.
    """
    folder = snapshot(kind, name, listed.commit, cache)
    lacking = [path for path in wanted if not (folder / path).exists()]  # before any retry, so that all are checked
    if lacking:
        retried(f"{name}@{listed.commit[:12]}", lambda: _download(kind, name, listed, lacking, cache))
    return folder


def _download(kind: Kind, name: str, listed: Listing, wanted: Sequence[str], cache: Path | None) -> None:
    from huggingface_hub import hf_hub_download, snapshot_download  # slow to import, and most runs do not need it

    settings: dict[str, Any] = {
        "repo_type": kind,
        "revision": listed.commit,
        "cache_dir": cache,
        "etag_timeout": SECONDS_TO_ANSWER,
    }
    if len(wanted) == 1:
        hf_hub_download(name, wanted[0], **settings)
    else:
        snapshot_download(name, allow_patterns=[glob.escape(path) for path in wanted], **settings)
    folder = snapshot(kind, name, listed.commit, cache)
    broken = [path for path in wanted if not _fits(listed.files[path], folder / path)]
    for path in broken:
        for left in {(folder / path).resolve(), folder / path}:
            left.unlink()
    if broken:
        raise HubSilentError(
            f"{name}@{listed.commit[:12]}: {broken[0]} came with other bytes than the Hub lists", CHANGED
        )


def ask(kind: Kind, name: str, revision: str, cache: Path | None = None) -> Listing:
    """Ask the Hub for a repository's files at a revision, and cache the answer.

    Raises:
        HubError: it has no such repository or commit, refuses it, or does not answer.
        SourceError: HF_HUB_OFFLINE forbids the request.
    """
    from huggingface_hub import HfApi
    from huggingface_hub._tree_cache import TreeCacheEntry, write_tree_cache

    api = HfApi()
    look = api.model_info if kind == "model" else api.dataset_info
    info = retried(
        f"{name}@{revision}",
        lambda: look(name, revision=revision, timeout=SECONDS_TO_ANSWER, files_metadata=True),
    )
    entries = {
        entry.rfilename: TreeCacheEntry(
            size=int(entry.size or 0),
            blob_id=str(entry.blob_id),
            lfs_sha256=entry.lfs.sha256 if entry.lfs else None,
            lfs_size=entry.lfs.size if entry.lfs else None,
        )
        for entry in info.siblings or ()
    }
    write_tree_cache(str(_folder(kind, name, cache)), str(info.sha), entries)
    return Listing(str(info.sha), entries)


def _known(kind: Kind, name: str, commit: str, cache: Path | None) -> Listing | None:
    """Return a commit's listing from the cache, written by any program; None if it has none."""
    from huggingface_hub._tree_cache import read_tree_cache

    entries = read_tree_cache(str(_folder(kind, name, cache)), commit)
    return None if entries is None else Listing(commit, entries)


def _fits(listed: TreeCacheEntry, path: Path) -> bool:
    """Return whether a file has the listed digest: sha256 for LFS files, git's blob id for others."""
    if listed.lfs_sha256 is not None:
        return file_sha256(path) == listed.lfs_sha256
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == listed.blob_id


def _folder(kind: Kind, name: str, cache: Path | None) -> Path:
    from huggingface_hub import constants

    return Path(cache or constants.HF_HUB_CACHE) / f"{kind}s--{name.replace('/', '--')}"
