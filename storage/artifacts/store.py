"""The artifact store: folders `<store>/<kind>/<key>/` that are whole or absent.

Design choices
- No manifest, no artifact: `manifest.json` is written last, and a local folder appears by one rename after fsync. On an
  object store, which has no rename, the manifest that is uploaded last plays that part: it says in which folder of
  their own its publisher's files lie, so no upload changes a file that a manifest names.
- Publishing is idempotent: who comes second with the same key finds an intact artifact and drops its own copy.
- Reading is checked: `storage.artifacts.verification`.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from storage.artifacts.checksums import put
from storage.artifacts.draft import Draft
from storage.artifacts.manifest import Provenance, parse_manifest
from storage.artifacts.uploads import unnamed
from storage.artifacts.verification import STAGING, Holdings
from storage.errors import ArtifactMissingError, CorruptArtifactError, StoreWriteError
from storage.filesystem.atomic import renamed, sync
from storage.filesystem.names import MANIFEST
from storage.filesystem.os_errors import full_disk_named, reading, writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from storage.artifacts.refs import ArtifactRef

logger = logging.getLogger(__name__)


class Store(Holdings):
    """A place for artifacts, given as an fsspec URL (`.bsl/store`, `s3://bucket/prefix`, `gs://…`).

    Args:
        url: where; a plain path is a local folder, made on the first publish.
        cache: local folder for copies of remote artifacts.
    """

    @contextmanager
    def draft(self, ref: ArtifactRef, provenance: Provenance) -> Iterator[Draft]:
        """A draft that is published when the block ends and forgotten when it fails.

        Raises:
            StoreWriteError: the store cannot be written.
            StoreReadError: the store does not say what it holds.
            NewerFormatError: the key is taken by an artifact of a newer program.
        """
        self._refuse_newer(ref)
        with self.workspace() as folder:
            draft = Draft(ref, folder, provenance)
            with full_disk_named(self.url):
                yield draft
            draft.seal()
            self._publish(ref, folder)

    def scratch(self, ref: ArtifactRef) -> Path:
        """A local folder in which a long stage keeps its state until the artifact is published."""
        with writing(self.workplace):
            return _made(self.workplace / ".scratch" / ref.path)

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """A local folder for the length of a block; garbage collection finds what a killed process leaves of it."""
        with writing(self.workplace):
            folder = _made(self.workplace / STAGING / uuid.uuid4().hex)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def forgotten_uploads(self, before: datetime) -> list[str]:
        """Names of files on an object store that no manifest names, uploaded before some time.

        Raises:
            StoreReadError: the store cannot be listed.
        """
        if self.local is not None:
            return []  # a folder appears as a whole
        with reading(self.url):
            try:
                paths = [path.removeprefix(f"{self.root}/") for path in self.fs.find(self.root)]
            except FileNotFoundError:
                return []
            return [name for name in unnamed(self, paths) if self.fs.modified(f"{self.root}/{name}") < before]

    def forget_loan(self, name: str) -> None:
        """Delete what `forgotten_uploads` named."""
        with writing(self.url):
            self.fs.rm_file(f"{self.root}/{name}")

    def drop_scratch(self, ref: ArtifactRef) -> None:
        """Forget the state of a stage that has published."""
        shutil.rmtree(self.scratch(ref), ignore_errors=True)

    def remember(self, ref: ArtifactRef, record: bytes) -> None:
        """Keep a small record that this artifact was published here, and is used now."""
        with writing(self.url):
            self.fs.makedirs(f"{self.root}/.records/{ref.kind}", exist_ok=True)
            self.fs.pipe_file(self._record(ref), record)

    def used(self, ref: ArtifactRef) -> None:
        """Note that an artifact is used now, from which collection tells its age; a read-only store notes nothing."""
        with suppress(StoreWriteError):
            self.remember(ref, ref.model_dump_json().encode())

    def remove(self, ref: ArtifactRef) -> None:
        """Delete an artifact, so that it is never half there, and its copy on this machine; nothing if it has gone."""
        with writing(self.url):
            if self.local is not None:
                gone = self._trash()
                renamed(self.local / ref.path, gone)  # killed behind it, `leftovers` finds the rest
                shutil.rmtree(gone, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):  # another collection was faster
                    self.fs.rm_file(f"{self.root}/{ref.path}/{MANIFEST}")
                    self.fs.rm(f"{self.root}/{ref.path}", recursive=True)
                shutil.rmtree(self.workplace / ref.path, ignore_errors=True)
            with suppress(FileNotFoundError):
                self.fs.rm_file(self._record(ref))

    def _refuse_newer(self, ref: ArtifactRef) -> None:
        try:
            self.manifest(ref)
        except (ArtifactMissingError, CorruptArtifactError):
            return

    def _publish(self, ref: ArtifactRef, folder: Path) -> None:
        if self.defect(ref) is None:
            logger.info("%s is already published; dropping the second copy", ref)
            return
        with writing(self.url):
            if self.local is not None:
                self._rename_into_place(ref, folder, self.local)
            else:
                self._upload(ref, folder)

    def _rename_into_place(self, ref: ArtifactRef, folder: Path, root: Path) -> None:
        final = root / ref.path
        _made(final.parent)
        while not renamed(folder, final):
            if self.defect(ref) is None:
                return  # another run published the same key in the meantime
            if not folder.is_dir():
                raise StoreWriteError(f"{folder} was deleted while {ref} was being made in it; run again")
            renamed(final, self._trash())
        sync(final.parent)

    def _trash(self) -> Path:
        """A new name on this disk for what is to go."""
        return _made(self.workplace / ".trash") / uuid.uuid4().hex

    def _upload(self, ref: ArtifactRef, folder: Path) -> None:
        """Upload to a place of one's own, and let the manifest decide: files of another publisher are never touched.

        Of two that both find nothing sound, the second manifest holds, and either is whole.
        """
        sealed = parse_manifest((folder / MANIFEST).read_bytes(), str(folder), ref)
        manifest, target = sealed.model_copy(update={"place": uuid.uuid4().hex}), f"{self.root}/{ref.path}"
        for name, entry in manifest.files.items():
            put(self.fs, folder / name, f"{target}/{manifest.where(name)}", entry)
        if self.defect(ref) is None:
            self.fs.rm(f"{target}/{manifest.place}", recursive=True)
            return  # another run published the same key in the meantime
        self.fs.pipe_file(f"{target}/{MANIFEST}", manifest.model_dump_json(indent=1).encode())


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
