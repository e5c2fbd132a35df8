"""What a store holds, read with checks: a manifest is trusted in nothing, and no byte is given on unhashed.

Design choices
- An artifact is whole if its manifest is that of its folder, its tables have all their parts and rows, and every file
  it lists is a regular file in its folder with the bytes that were published.
- Bytes are hashed once per process and file version, columns are held against `schemas`. Whether a result is
  there is answered by what an object store keeps beside its files (`checksums`); what is read from it is hashed on
  this machine. A disk vouches for nothing: size and time of a local file stay as they were when its bytes rot.
- That something is not there is an answer; that the store will not say is an error (`StoreReadError`), never an answer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fsspec
import polars as pl

from storage.artifacts.checksums import keeps
from storage.artifacts.listing import artifact_refs
from storage.artifacts.manifest import MOST_BYTES, FileEntry, Manifest, describe_files, parse_manifest
from storage.artifacts.refs import ArtifactRef
from storage.artifacts.schemas import check_schema, tables_of
from storage.errors import ArtifactMissingError, CorruptArtifactError, StorageError, StoreReadError
from storage.filesystem.atomic import renamed
from storage.filesystem.digests import version_content, version_sha256
from storage.filesystem.names import MANIFEST, irregular
from storage.filesystem.os_errors import reading
from storage.filesystem.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

STAGING: Final = ".staging"  # where collection finds what a killed process leaves
_REMEDY: Final = "delete the artifact or run its stage again"


class Holdings:
    """The artifacts of a store, to be read.

    Args:
        url: where; a plain path is a local folder.
        cache: local folder for copies of remote artifacts.

    Raises:
        ValueError: the address holds a password.
    """

    def __init__(self, url: str, cache: Path | None = None) -> None:
        self.url = without_password(url)
        # Listings change under us when several workers share a store, so none is remembered.
        self.fs, root = fsspec.url_to_fs(url, use_listings_cache=False)
        self.root = root.rstrip("/")
        self.local = Path(self.root) if "file" in _protocols(self.fs) else None
        name = hashlib.sha256(self.root.encode()).hexdigest()[:16]
        self._cache = (cache or Path.home() / ".cache" / "bsl") / name

    def manifest(self, ref: ArtifactRef) -> Manifest:
        """The manifest of an artifact, which says that it exists, not that it is intact.

        Raises:
            ArtifactMissingError, CorruptArtifactError, NewerFormatError, StoreReadError: as `storage.errors` says.
        """
        path = f"{self.root}/{ref.path}/{MANIFEST}"
        try:
            with reading(path):
                text = _local_manifest(Path(path)) if self.local is not None else self.fs.cat_file(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ArtifactMissingError(f"{self.url} holds no {ref}; run the stage that makes it") from error
        return parse_manifest(text, path, ref)

    def defect(self, ref: ArtifactRef) -> str | None:
        """Why an artifact does not count as a cached result, or None if it is whole.

        It is whole if it is not damaged, and every input that is still in the store has the content it had then. An
        object store's word is taken for its files' content; bytes are hashed when they are read, or by `damage`.

        Raises:
            NewerFormatError: it is left alone, because an older program must not overwrite it.
            StoreReadError: the store does not say.
        """
        try:
            self.check(ref)
        except (ArtifactMissingError, CorruptArtifactError) as error:
            return str(error)
        return None

    def damage(self, ref: ArtifactRef) -> str | None:
        """Which file of an artifact is missing or not as it was published, the manifest included; None if none is.

        Every byte is hashed, also where the store keeps a checksum.

        Raises:
            NewerFormatError: an older program cannot tell.
            StoreReadError: the store does not say.
        """
        try:
            return self._fault(self.manifest(ref), every_byte=True)
        except (ArtifactMissingError, CorruptArtifactError) as error:
            return str(error)

    def staleness(self, manifest: Manifest) -> str | None:
        """Which input of an artifact is in the store with another content than it had then; None if none is."""
        for source in manifest.provenance.inputs.values():
            try:
                current = self.manifest(ArtifactRef(kind=source.kind, key=source.key)).digest
            except StoreReadError:
                raise
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
            StoreReadError: the store does not say.
        """
        manifest = self.manifest(ref)  # once: another may take its place at any time
        if fault := self._fault(manifest, every_byte=False) or self.staleness(manifest):
            raise CorruptArtifactError(fault)
        return manifest

    def fetch(self, ref: ArtifactRef) -> Path:
        """A local folder with the artifact's files, checked; a remote one is copied to the cache first."""
        return self._fetched(self.check(ref))

    def _fetched(self, manifest: Manifest) -> Path:
        path = manifest.ref.path
        if self.local is not None:
            return self.local / path / manifest.place
        folder = self._cache / path / manifest.digest[:16]
        if not _is_copy(folder, manifest):
            shutil.rmtree(folder, ignore_errors=True)
            for needed in (folder.parent, self._cache / STAGING):
                needed.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._cache / STAGING) as staging:
                self._copy(manifest, Path(staging) / "files")
                renamed(Path(staging) / "files", folder)
        with suppress(OSError):  # another user's copy may be read
            os.utime(folder)  # used now, from which collection tells its age
        return folder

    def _copy(self, manifest: Manifest, folder: Path) -> None:
        """Bring the files of an artifact to a local folder, and hash what has come."""
        place = f"{self.root}/{manifest.ref.path}"
        for name in manifest.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with reading(self.url):
                self.fs.get_file(f"{place}/{manifest.where(name)}", str(folder / name))
        for name, entry in describe_files(folder).items():
            if entry != manifest.files[name]:
                raise CorruptArtifactError(
                    f"{place}/{manifest.where(name)}: what came has sha256 {entry.sha256[:12]}…, manifest says "
                    f"{manifest.files[name].sha256[:12]}…; delete {place} and run its stage again"
                )

    def scan(self, ref: ArtifactRef, table: str | None = None) -> pl.LazyFrame:
        """A table of an artifact, lazily; its kind's own table unless named.

        Raises:
            ArtifactMissingError, CorruptArtifactError: the artifact is not whole.
            SchemaError: its columns are not the declared ones.
        """
        name = table or ref.kind.partition("/")[0]
        manifest = self.check(ref)
        folder = self._fetched(manifest)
        parts = [folder / file for file in manifest.parts(name)]
        if not parts:
            raise ArtifactMissingError(f"{ref} has no table {name!r}; it holds {', '.join(sorted(manifest.files))}")
        frame = pl.scan_parquet(parts, glob=False)  # else a store at `run[1]` is read as a pattern
        check_schema(name, frame.collect_schema(), str(folder))
        return frame

    def refs(self, kind: str | None = None) -> list[ArtifactRef]:
        """All artifacts, or those of one kind and the kinds nested in it, by path; none has been checked.

        A folder with a manifest that is not named as an artifact is left out with a warning.

        Raises:
            StoreReadError: a part of the store cannot be listed.
        """
        with reading(self.url):
            return artifact_refs(self.fs, self.root, kind, local=self.local is not None)

    def was_published(self, ref: ArtifactRef) -> bool:
        """Whether this artifact was here once, whole or not."""
        with reading(self.url):
            return bool(self.fs.exists(f"{self.root}/{ref.path}") or self.fs.exists(self._record(ref)))

    def last_used(self, ref: ArtifactRef) -> datetime | None:
        """When `Store.remember` was last called for an artifact; None if never."""
        try:
            with reading(self.url):
                modified: datetime = self.fs.modified(self._record(ref))
        except FileNotFoundError:
            return None
        return modified

    @property
    def workplace(self) -> Path:
        """The local folder below which runs keep what is not published yet: the store itself, or its cache."""
        return self.local if self.local is not None else self._cache

    def _record(self, ref: ArtifactRef) -> str:
        return f"{self.root}/.records/{ref.path}.json"

    def _fault(self, manifest: Manifest, *, every_byte: bool) -> str | None:
        fault = next(self._faults(manifest, every_byte=every_byte), None)
        return f"{self.root}/{manifest.ref.path}/{fault}; {_REMEDY}" if fault else None

    def _faults(self, manifest: Manifest, *, every_byte: bool) -> Iterator[str]:
        expected = tables_of(manifest.kind)
        if expected and not any(table in manifest.tables for table in expected):
            yield f"{MANIFEST}: lists no table {' or '.join(expected)}"
        rows: dict[str, int | None] = {}
        for name, entry in manifest.files.items():
            path = manifest.where(name)
            try:
                with reading(f"{self.root}/{manifest.ref.path}/{path}"):
                    fault, rows[name] = self._file_fault(manifest.ref, path, entry, every_byte=every_byte)
            except (FileNotFoundError, NotADirectoryError):
                fault = "missing, though its manifest lists it"
            if fault:
                yield f"{path}: {fault}"
        for table, declared in manifest.tables.items():
            counts = [rows[name] for name in manifest.parts(table)]
            found = sum(count for count in counts if count is not None)
            if None not in counts and found != declared.rows:
                yield f"{MANIFEST}: table {table!r} has {declared.rows:,} rows, its parts have {found:,}"

    def _file_fault(
        self, ref: ArtifactRef, name: str, entry: FileEntry, *, every_byte: bool
    ) -> tuple[str | None, int | None]:
        """What is wrong with a file, and the rows that it has as a part of a table; None where it was not read."""
        folder = f"{self.root}/{ref.path}"
        if self.local is not None and (kind := irregular(Path(folder), name)) is not None:
            return f"{kind}, expected a regular file", 0
        if not every_byte and keeps(self.fs, f"{folder}/{name}", entry):
            return None, None
        content = version_content(self.fs, f"{folder}/{name}")
        if content.sha256 != entry.sha256:
            return f"sha256 {content.sha256[:12]}…, manifest says {entry.sha256[:12]}…", 0
        return None, content.rows or 0


def _local_manifest(path: Path) -> bytes:
    """The bytes of a manifest on this machine, where a name may be anything: a folder, a pipe that blocks."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        raise CorruptArtifactError(
            f"{path}: not a manifest, expected a regular file of at most {MOST_BYTES >> 20} MiB; {_REMEDY}"
        )
    return path.read_bytes()


def _is_copy(folder: Path, manifest: Manifest) -> bool:
    """Whether a local folder holds an artifact's files and no others; each version of a file is hashed once."""
    here = fsspec.filesystem("file")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return names == set(manifest.files) and all(
        version_sha256(here, f"{folder}/{name}") == entry.sha256 for name, entry in manifest.files.items()
    )


def _protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
