"""The artifact store: folders `<store>/<kind>/<key>/` that are whole or absent.

Design choices
- No manifest, no artifact: `manifest.json` is written last, and a local folder appears by one rename after fsync. On an
  object store, which has no rename, the manifest that is uploaded last plays that part.
- Publishing is idempotent: who comes second with the same key finds an intact artifact and drops its own copy.
- Reading is checked: bytes are hashed once per process and file version, columns against `storage.schemas`.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import logging
import os
import shutil
import tempfile
import uuid
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import polars as pl
from pydantic import ValidationError

from storage.digest import version_sha256
from storage.draft import Draft, full_disk_named, writing
from storage.errors import ArtifactMissingError, CorruptArtifactError, StorageError, StoreWriteError
from storage.files import sync
from storage.manifest import NAME, FileEntry, Manifest, Provenance, describe_files, parse_manifest
from storage.refs import ArtifactRef
from storage.schemas import check_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

logger = logging.getLogger(__name__)


class Store:
    """A place for artifacts, given as an fsspec URL (`.bsl/store`, `s3://bucket/prefix`, `gs://…`).

    Args:
        url: where; a plain path is a local folder, made on the first publish.
        cache: local folder for copies of remote artifacts.
    """

    def __init__(self, url: str, cache: Path | None = None) -> None:
        self.url = url
        # Listings change under us when several workers share a store, so none is remembered.
        self.fs, root = fsspec.url_to_fs(url, use_listings_cache=False)
        self.root = root.rstrip("/")
        self.local = Path(self.root) if "file" in _protocols(self.fs) else None
        name = hashlib.sha256(self.root.encode()).hexdigest()[:16]
        self._cache = (cache or Path.home() / ".cache" / "bsl") / name

    def manifest(self, ref: ArtifactRef) -> Manifest:
        """The manifest of an artifact, which says that it exists, not that it is intact.

        Raises:
            ArtifactMissingError, CorruptArtifactError, NewerFormatError: as `storage.errors` says.
        """
        path = f"{self.root}/{ref.path}/{NAME}"
        try:
            text = self.fs.cat_file(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ArtifactMissingError(f"{self.url} holds no {ref}; run the stage that makes it") from error
        return parse_manifest(text, path)

    def defect(self, ref: ArtifactRef) -> str | None:
        """Why an artifact does not count as a cached result, or None if it is whole.

        It is whole if it is not damaged, and every input that is still in the store has the content it had then.

        Raises:
            NewerFormatError: it is left alone, because an older program must not overwrite it.
        """
        return self.damage(ref) or self.staleness(self.manifest(ref))

    def damage(self, ref: ArtifactRef) -> str | None:
        """Which file of an artifact is missing or not as it was published, the manifest included; None if none is.

        Raises:
            NewerFormatError: an older program cannot tell.
        """
        try:
            manifest = self.manifest(ref)
        except (ArtifactMissingError, CorruptArtifactError) as error:
            return str(error)
        faults = (self._file_defect(f"{self.root}/{ref.path}/{name}", entry) for name, entry in manifest.files.items())
        return next((fault for fault in faults if fault is not None), None)

    def staleness(self, manifest: Manifest) -> str | None:
        """Which input of an artifact is in the store with another content than it had then; None if none is."""
        for source in manifest.provenance.inputs.values():
            try:
                current = self.manifest(ArtifactRef(kind=source.kind, key=source.key)).digest
            except StorageError:
                continue  # an input may be collected once it has been used
            if current != source.digest:
                return f"{manifest.ref}: {source.kind}/{source.key[:12]} has been made again with other content since"
        return None

    def check(self, ref: ArtifactRef) -> Manifest:
        """The manifest of an intact artifact.

        Raises:
            ArtifactMissingError: there is none.
            CorruptArtifactError: a file or an input is not as it was.
        """
        manifest = self.manifest(ref)
        if (fault := self.defect(ref)) is not None:
            raise CorruptArtifactError(fault)
        return manifest

    def fetch(self, ref: ArtifactRef) -> Path:
        """A local folder with the artifact's files, checked; a remote one is copied to the cache first."""
        manifest = self.check(ref)
        if self.local is not None:
            return self.local / ref.path
        folder = self._cache / ref.path / manifest.digest[:16]
        if not folder.exists() or describe_files(folder) != manifest.files:
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=_made(folder.parent)) as staging:
                for name in manifest.files:
                    target = Path(staging) / "files" / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    self.fs.get_file(f"{self.root}/{ref.path}/{name}", str(target))
                _rename(Path(staging) / "files", folder)
        return folder

    def scan(self, ref: ArtifactRef, table: str | None = None) -> pl.LazyFrame:
        """A table of an artifact, lazily; its kind's own table unless named.

        Raises:
            ArtifactMissingError, CorruptArtifactError: the artifact is not whole.
            SchemaError: its columns are not the declared ones.
        """
        name = table or ref.kind.partition("/")[0]
        manifest, folder = self.manifest(ref), self.fetch(ref)
        parts = [folder / file for file in sorted(manifest.files) if fnmatch(file, f"{name}-?????.parquet")]
        if not parts:
            raise ArtifactMissingError(f"{ref} has no table {name!r}; it holds {', '.join(sorted(manifest.files))}")
        frame = pl.scan_parquet(parts, glob=False)  # else a store at `run[1]` is read as a pattern
        check_schema(name, frame.collect_schema(), str(folder))
        return frame

    def refs(self, kind: str | None = None) -> list[ArtifactRef]:
        """All artifacts, or those of one kind and the kinds nested in it, by path; none has been checked.

        A folder with a manifest that is not named as an artifact is left out with a warning.
        """
        patterns = [f"{kind}/*", f"{kind}/*/*"] if kind else ["*/*", "*/*/*"]
        root = glob.escape(self.root)
        found = [path for pattern in patterns for path in self.fs.glob(f"{root}/{pattern}/{NAME}")]
        folders = sorted(path[len(self.root) + 1 : -len(NAME) - 1] for path in found)
        return [ref for path in folders if path[0] != "." and (ref := _ref(path)) is not None]

    @contextmanager
    def draft(self, ref: ArtifactRef, provenance: Provenance) -> Iterator[Draft]:
        """A draft that is published when the block ends and forgotten when it fails.

        Raises:
            StoreWriteError: the store cannot be written.
            NewerFormatError: the key is taken by an artifact of a newer program.
        """
        self._refuse_newer(ref)
        with writing(self.url):
            folder = self._staging()
        try:
            draft = Draft(ref, folder, provenance)
            with full_disk_named(self.url):
                yield draft
            draft.seal()
            self._publish(ref, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def scratch(self, ref: ArtifactRef) -> Path:
        """A local folder in which a long stage keeps its state until the artifact is published."""
        base = self.local / ".scratch" if self.local is not None else self._cache / ".scratch"
        with writing(self.url):
            return _made(base / ref.path)

    def drop_scratch(self, ref: ArtifactRef) -> None:
        """Forget the state of a stage that has published."""
        shutil.rmtree(self.scratch(ref), ignore_errors=True)

    def remember(self, ref: ArtifactRef, record: bytes) -> None:
        """Keep a small record that this artifact was published here, and is used now."""
        with writing(self.url):
            self.fs.makedirs(f"{self.root}/.records/{ref.kind}", exist_ok=True)
            self.fs.pipe_file(f"{self.root}/.records/{ref.path}.json", record)

    def was_published(self, ref: ArtifactRef) -> bool:
        """Whether this artifact was here once, whole or not."""
        return bool(
            self.fs.exists(f"{self.root}/{ref.path}") or self.fs.exists(f"{self.root}/.records/{ref.path}.json")
        )

    def last_used(self, ref: ArtifactRef) -> datetime | None:
        """When `remember` was last called for an artifact; None if never."""
        record = f"{self.root}/.records/{ref.path}.json"
        modified: datetime | None = self.fs.modified(record) if self.fs.exists(record) else None
        return modified

    def remove(self, ref: ArtifactRef) -> None:
        """Delete an artifact, its manifest first, so that it is never half there."""
        with writing(self.url):
            self.fs.rm_file(f"{self.root}/{ref.path}/{NAME}")
            self.fs.rm(f"{self.root}/{ref.path}", recursive=True)
            record = f"{self.root}/.records/{ref.path}.json"
            if self.fs.exists(record):
                self.fs.rm_file(record)

    def _file_defect(self, path: str, entry: FileEntry) -> str | None:
        remedy = "delete the artifact or run its stage again"
        try:
            found = version_sha256(self.fs, path)
        except FileNotFoundError:
            return f"{path}: missing, though its manifest lists it; {remedy}"
        if found != entry.sha256:
            return f"{path}: sha256 {found[:12]}…, manifest says {entry.sha256[:12]}…; {remedy}"
        return None

    def _refuse_newer(self, ref: ArtifactRef) -> None:
        try:
            self.manifest(ref)
        except (ArtifactMissingError, CorruptArtifactError):
            return

    def _staging(self) -> Path:
        if self.local is None:
            return Path(tempfile.mkdtemp(prefix="bsl-"))
        return _made(self.local / ".staging" / uuid.uuid4().hex)

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
        while not _rename(folder, final):
            if self.defect(ref) is None:
                return  # another run published the same key in the meantime
            if not folder.is_dir():
                raise StoreWriteError(f"{folder} was deleted while {ref} was being made in it; run again")
            _rename(final, _made(root / ".trash") / uuid.uuid4().hex)
        sync(final.parent)

    def _upload(self, ref: ArtifactRef, folder: Path) -> None:
        target = f"{self.root}/{ref.path}"
        if self.fs.exists(f"{target}/{NAME}"):
            self.fs.rm_file(f"{target}/{NAME}")
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / NAME)
        for path in (*files, folder / NAME):
            self.fs.put_file(str(path), f"{target}/{path.relative_to(folder).as_posix()}")


def _protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _ref(path: str) -> ArtifactRef | None:
    """The reference to `<kind>/<key>`; None for a folder that somebody else put there."""
    kind, _, key = path.rpartition("/")
    try:
        return ArtifactRef(kind=kind, key=key)
    except ValidationError:
        logger.warning("%s is not named <kind>/<64 hex digits>, so it is no artifact; move it out of the store", path)
        return None


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _rename(source: Path, target: Path) -> bool:
    """Rename a folder; False if the target is taken, or the source has gone: another run was faster."""
    try:
        os.rename(source, target)  # noqa: PTH104 - Path.rename says the same, os.rename is what is atomic
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
            return False
        raise
    return True
