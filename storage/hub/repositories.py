"""Hub repositories: resolve a revision to a commit, list its files, and fetch them into the Hub's own cache.

Design choices
- A commit's listing never changes, so it is saved (`listing`), as is a branch's commit (`refs/`). So a second run, or a
  run with a copied cache, needs no Hub.
- Every file is compared with its listed digest: a proxy's error page has the right name, and often the right size.
"""

from __future__ import annotations

import glob
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from bsl.storage.errors import HubError, HubSilentError, SourceError, StoreWriteError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.digests import file_sha256
from bsl.storage.filesystem.os_errors import writing
from bsl.storage.hub.faults import REMEDIES, Kind, retried
from bsl.storage.hub.listing import HubFile, Listing, save_listing, saved_listing
from bsl.storage.record import NotInKey, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

logger = logging.getLogger(__name__)

COMMIT: Final = re.compile(r"[0-9a-f]{40}")
SECONDS_TO_ANSWER: Final = 10.0


class Repository(Record):
    """A repository on the Hub, and its folder in the Hub's cache."""

    kind: Kind
    name: str
    """`organisation/name`."""
    cache: Annotated[Path | None, NotInKey] = None
    """The Hub's cache; HF_HUB_CACHE if None."""

    @property
    def folder(self) -> Path:
        """Folder of the repository in the cache."""
        from huggingface_hub import constants

        return Path(self.cache or constants.HF_HUB_CACHE) / f"{self.kind}s--{self.name.replace('/', '--')}"

    def pinned(self, revision: str | None) -> str:
        """Return the commit of a revision; if the Hub does not answer, the last commit in the cache.

        Args:
            revision: commit, branch or tag; `main` if None. A full commit is returned unchanged.

        Raises:
            HubError: the Hub has no such repository or commit, or refuses access, or does not answer and the cache has
                no commit.
            SourceError: HF_HUB_OFFLINE forbids the request, and the cache has no commit.
            StoreWriteError: `cache`, which is being filled for other machines, cannot keep the commit.
        """
        name = revision or "main"
        if COMMIT.fullmatch(name):
            return name
        ref = self.folder / "refs" / name
        try:
            commit, _ = self.ask(name)
        except SourceError as error:
            if not ref.is_file() or (isinstance(error, HubError) and not isinstance(error, HubSilentError)):
                raise
            commit = ref.read_text().strip()
            logger.warning("%s@%s: using commit %s from the cache: %s", self.name, name, commit, error.finding)
            return commit
        if ref.is_file() and ref.read_text().strip() == commit:
            return commit
        try:
            with writing(ref), atomic_write(ref) as file:
                file.write_text(commit, encoding="utf-8")
        except StoreWriteError as error:  # the cache of another user, or of an image: its files can be read
            if self.cache is not None:
                raise
            logger.info("the commit of %s@%s is not saved: %s", self.name, name, error)
        return commit

    def ask(self, revision: str) -> tuple[str, Listing]:
        """Ask the Hub for the commit of a revision and its files, by path with size and digests; save the answer.

        Raises:
            HubError: the Hub has no such repository or commit, refuses access, or does not answer.
            SourceError: HF_HUB_OFFLINE forbids the request.
        """
        from huggingface_hub import HfApi

        api = HfApi()
        look = api.model_info if self.kind == "model" else api.dataset_info
        info = retried(
            f"{self.name}@{revision}",
            self.kind,
            lambda: look(self.name, revision=revision, timeout=SECONDS_TO_ANSWER, files_metadata=True),
        )
        files = {entry.rfilename: HubFile.of(entry) for entry in info.siblings or ()}
        save_listing(self.folder, str(info.sha), files)
        return str(info.sha), files


class HubCommit(Repository):
    """A repository at a commit."""

    commit: str
    """Full commit."""

    @property
    def path(self) -> Path:
        """Folder of the commit's files in the cache, complete or not."""
        return self.folder / "snapshots" / self.commit

    def files(self) -> Listing:
        """Return the files as `ask` does; a saved listing needs no Hub."""
        saved = saved_listing(self.folder, self.commit)
        return self.ask(self.commit)[1] if saved is None else saved

    def fetch(self, paths: Iterable[str]) -> Path:
        """Download the files that the cache lacks.

        Returns:
            The folder with the files.

        Raises:
            HubError: the Hub does not deliver a file, or its bytes differ from the listing.
            SourceError: HF_HUB_OFFLINE forbids the request.
        """
        missing = self.lacking(paths)  # before any retry: all are checked
        if missing:
            retried(f"{self.name}@{self.commit[:12]}", self.kind, lambda: self._download(missing))
        return self.path

    def lacking(self, paths: Iterable[str]) -> list[str]:
        """Return the files that are not in the cache, or shorter there than in the saved listing: copied in part."""
        listed = saved_listing(self.folder, self.commit) or {}  # no request: a read-only cache may be without
        least = {path: listed[path].size if path in listed else 0 for path in paths}
        files = {path: self.path / path for path in least}
        return [path for path, file in files.items() if not file.exists() or file.stat().st_size < least[path]]

    def _download(self, paths: Sequence[str]) -> None:
        from huggingface_hub import constants, snapshot_download  # slow to import, and most runs do not need it

        parts = [path for path in self.lacking(paths) if (self.path / path).exists()]
        if parts and constants.HF_HUB_OFFLINE:
            raise SourceError(
                f"{self.name}@{self.commit[:12]}: {parts[0]} in the cache is not complete, and HF_HUB_OFFLINE forbids "
                "requests to the Hub",
                REMEDIES[self.kind].offline,
            )
        self._remove(parts)  # else the client keeps them
        snapshot_download(
            self.name,
            repo_type=self.kind,
            revision=self.commit,
            cache_dir=self.cache,
            etag_timeout=SECONDS_TO_ANSWER,
            allow_patterns=[glob.escape(path) for path in paths],
        )
        listed = self.files()
        broken = [path for path in paths if not _matches(listed[path], self.path / path)]
        self._remove(broken)
        if broken:
            raise HubSilentError(
                f"{self.name}@{self.commit[:12]}: the download of {broken[0]} differs from the Hub's listing",
                REMEDIES[self.kind].changed,
            )

    def _remove(self, paths: Iterable[str]) -> None:
        """Delete files of the cache, which are links to files that are named by their digests."""
        for path in paths:
            for file in {(self.path / path).resolve(), self.path / path}:
                file.unlink(missing_ok=True)  # two files with the same content are one


def _matches(listed: HubFile, path: Path) -> bool:
    """Return whether a file has the listed digest: sha256 for LFS files, git's blob id for others."""
    from huggingface_hub.utils.sha import git_hash

    if listed.lfs_sha256 is not None:
        return file_sha256(path) == listed.lfs_sha256
    return git_hash(path.read_bytes()) == listed.blob_id


def cached_models() -> list[str]:
    """Return the names of the models in the Hub's cache."""
    from huggingface_hub import constants

    folders = Path(constants.HF_HUB_CACHE).glob("models--*")
    return sorted(folder.name.removeprefix("models--").replace("--", "/") for folder in folders)
