"""The artifact store: folders `<store>/<kind>/<key>/` that are complete or absent.

Design choices
- Without a manifest there is no artifact: a local folder appears by one rename, and an object store's manifest is
  uploaded last. It names the folder of its publisher's files, which no upload changes.
- Publishing is idempotent: the second publisher of a key finds an intact artifact and drops its own copy.
- An artifact may be missing; a store that cannot be read is an error (`StoreReadError`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import polars as pl

from bsl.storage.artifacts.draft import Draft
from bsl.storage.artifacts.manifest import Manifest, Provenance, parse_manifest
from bsl.storage.artifacts.refs import ADDRESS, ArtifactRef, deletion
from bsl.storage.artifacts.schemas import check_schema
from bsl.storage.artifacts.verification import fault_of, local_copy, local_manifest, put
from bsl.storage.errors import (
    ArtifactMissingError,
    CorruptArtifactError,
    NewerFormatError,
    StaleArtifactError,
    StoreReadError,
    StoreWriteError,
)
from bsl.storage.filesystem.atomic import atomic_write, renamed, sync
from bsl.storage.filesystem.caches import cache_folder, named
from bsl.storage.filesystem.folders import files_below
from bsl.storage.filesystem.locks import try_lock
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.filesystem.os_errors import explain_full_disk, reading, writing
from bsl.storage.filesystem.secrets import without_password
from bsl.storage.filesystem.values import require_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

logger = logging.getLogger(__name__)

_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z")
_DEEPEST = 3  # <kind>/<nested kind>/<key>


class Store:
    """An artifact store at an fsspec URL (`.bsl/store`, `s3://bucket/prefix`, `gs://…`).

    Args:
        url: URL or path; a plain path is a local folder, made on the first publish.
        cache: local folder for copies of remote artifacts.

    Raises:
        StoreReadError: the path, or a part of it, is a file; or no client opens the URL.
        TypeError: it is neither a URL nor a path.
        ValueError: the URL contains a password.
    """

    def __init__(self, url: str | Path, cache: Path | None = None) -> None:
        url = require_name(url, "the store")
        self.url = without_password(url)
        # Several workers may share a store, so listings are not cached.
        with reading(self.url):  # an unknown protocol, a missing client, or one that connects at once
            self.fs, root = fsspec.url_to_fs(url, use_listings_cache=False)
        self.root = root.rstrip("/")
        protocols = (self.fs.protocol,) if isinstance(self.fs.protocol, str) else self.fs.protocol
        self.local = Path(self.root) if "file" in protocols else None
        if self.local is not None and (file := next(filter(os.path.isfile, (self.local, *self.local.parents)), None)):
            raise StoreReadError(f"store {self.url}: {file} is a file, expected a folder. Choose another folder.")
        self._given_cache = cache

    @cached_property
    def cache(self) -> Path:
        """Local folder for copies of this store's artifacts.

        Raises:
            StoreWriteError: no folder for them can be written.
        """
        return cache_folder(self._given_cache) / hashlib.sha256(self.root.encode()).hexdigest()[:16]

    @property
    def address(self) -> str:
        """Absolute path of a local store, URL of another."""
        return str(self.local.absolute()) if self.local is not None else self.url

    @property
    def workplace(self) -> Path:
        """Local folder for unpublished files: the store itself, or its cache."""
        return self.local if self.local is not None else self.cache

    @property
    def _named_workplace(self) -> str:
        return self.url if self.local is not None else named(self.cache)

    def path(self, ref: ArtifactRef) -> str:
        """Return the path of an artifact's folder in `fs`."""
        return f"{self.root}/{ref.path}"

    def manifest(self, ref: ArtifactRef) -> Manifest:
        """Return the manifest of an artifact, without checking its files.

        Raises:
            ArtifactMissingError: there is no such artifact.
            CorruptArtifactError, NewerFormatError: as `parse_manifest`.
            StoreReadError: the store cannot be read.
        """
        path = f"{self.path(ref)}/{MANIFEST}"
        try:
            with reading(path):
                text = local_manifest(Path(path), ref) if self.local is not None else self.fs.cat_file(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ArtifactMissingError(f"{self.url} contains no {ref}. Run the stage that makes it.") from error
        return parse_manifest(text, path, ref)

    def defect(self, ref: ArtifactRef) -> str | None:
        """Return why an artifact cannot be used as a cached result, or None if it can.

        Raises:
            NewerFormatError: it was made by a newer version, which this one must not overwrite.
            StoreReadError: the store cannot be read.
        """
        try:
            self.check(ref)
        except (ArtifactMissingError, CorruptArtifactError) as error:
            return str(error)
        return None

    def check(self, ref: ArtifactRef, *, every_byte: bool = False) -> Manifest:
        """Check that an artifact is undamaged and made from the inputs in the store; return its manifest.

        Inputs that are no longer in the store are not compared. An object store's checksums are trusted unless
        `every_byte` is set, because files are hashed when they are copied from it.

        Raises:
            ArtifactMissingError: it does not exist.
            CorruptArtifactError: a file has changed, or (StaleArtifactError) an input has.
            NewerFormatError: it was made by a newer version, so it cannot be checked.
            StoreReadError: the store cannot be read.
        """
        manifest = self.manifest(ref)  # read it once: another publisher may replace it at any time
        local = self.local is not None
        if fault := fault_of(self.fs, self.path(ref), manifest, local=local, every_byte=every_byte):
            raise CorruptArtifactError(fault)
        for source in manifest.provenance.inputs.values():
            try:
                current = self.manifest(source).digest
            except (ArtifactMissingError, CorruptArtifactError, NewerFormatError):
                continue  # an input may be deleted once it has been used
            if current != source.digest:
                raise StaleArtifactError(f"{ref}: its input {source} was made again with other content")
        return manifest

    def fetch(self, ref: ArtifactRef) -> Path:
        """Return a local folder with the artifact's checked files; a remote artifact is copied to the cache first."""
        return self._folder(self.check(ref))

    def export(self, ref: ArtifactRef, target: Path, extra: Path | None = None) -> Path:
        """Copy an intact artifact, manifest included, to a new folder or, if the name ends in `.zip`, into an archive.

        Files in the folder `extra` are added; they replace files of the same name and are not in the manifest.

        Raises:
            StoreWriteError: the target exists, and nothing is overwritten; its name is that of another kind of archive;
                or the disk is full.
            ArtifactMissingError, CorruptArtifactError: the artifact is missing or damaged.
        """
        if target.exists():
            raise StoreWriteError(f"{target} already exists. Name a new folder or archive.")
        if target.suffix != ".zip" and target.suffix.lower() in _ARCHIVES:
            raise StoreWriteError(
                f"{target}: {target.suffix} archives are not written. Name a folder, or a file that ends in .zip."
            )
        manifest = self.check(ref)
        source, zipped = self._folder(manifest), target.suffix == ".zip"
        with explain_full_disk(target), atomic_write(target) as output:
            folder = output.with_suffix("") if zipped else output
            for name in manifest.files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, folder / name)
            if extra is not None:
                shutil.copytree(extra, folder, dirs_exist_ok=True)
            copied = manifest.model_copy(update={"place": ""})  # in a copy, the files are next to the manifest
            (folder / MANIFEST).write_text(copied.model_dump_json(indent=1), encoding="utf-8")
            if zipped:
                shutil.make_archive(str(folder), "zip", folder)
        return target

    def scan(self, ref: ArtifactRef, table: str | None = None) -> pl.LazyFrame:
        """Return a table of an artifact as a lazy frame; by default the table of its kind.

        Raises:
            ArtifactMissingError, CorruptArtifactError: the artifact or the table is missing, or a file is damaged.
            SchemaError: its columns differ from the declared ones.
        """
        name = table or ref.kind.partition("/")[0]
        manifest = self.check(ref)
        folder = self._folder(manifest)
        parts = [folder / file for file in manifest.parts(name)]
        if not parts:
            raise ArtifactMissingError(f"{ref} has no table {name!r}; it contains {', '.join(sorted(manifest.files))}")
        frame = pl.scan_parquet(parts, glob=False)  # else polars reads `run[1]` in a path as a pattern
        check_schema(name, frame.collect_schema(), str(folder), deletion(ref))
        return frame

    def refs(self, kind: str | None = None) -> list[ArtifactRef]:
        """Return all artifacts, or those of a kind and the kinds nested in it, sorted by path; none is checked.

        A folder with a manifest but without an artifact's name is skipped with a warning. Folders inside an artifact,
        for example a model with a manifest, are skipped silently.

        Raises:
            StoreReadError: a folder cannot be listed; garbage collection needs a complete list.
        """
        folder = f"{self.root}/{kind}" if kind else self.root
        files: list[str] = []
        with reading(self.url), suppress(FileNotFoundError):
            files += list(_manifests(self.root, folder) if self.local is not None else files_below(self.fs, folder))
        below = (file[len(self.root) + 1 :] for file in files)
        refs = []
        for path in sorted({file.removesuffix(f"/{MANIFEST}") for file in below if file.endswith(f"/{MANIFEST}")}):
            artifact = ADDRESS.match(path)
            if artifact is not None and artifact.end() == len(path):
                refs.append(ArtifactRef(kind=artifact["kind"], key=artifact["key"]))
            elif artifact is None and 1 <= path.count("/") < _DEEPEST:
                logger.warning(
                    "%s is not named <kind>/<64 hex digits>, so it is not an artifact. Move it out of the store.",
                    repr(path)[1:-1],
                )
        return refs

    def intact(self, kind: str, seen: Collection[str] = ()) -> Iterator[tuple[ArtifactRef, pl.LazyFrame]]:
        """Yield the artifacts of a kind by name with their tables, except those whose keys are in `seen`.

        Damaged ones are skipped with a warning: a sentence of a damaged part of the translation memory is translated
        again.
        """
        for ref in self.refs(kind):
            if ref.key not in seen:
                try:
                    yield ref, self.scan(ref)
                except (ArtifactMissingError, CorruptArtifactError) as error:
                    logger.warning("%s is not used: %s", ref, error)

    @contextmanager
    def draft(self, ref: ArtifactRef, provenance: Provenance) -> Iterator[Draft]:
        """Open a draft that is published when the block ends and discarded when it fails.

        Raises:
            StoreWriteError: the store cannot be written.
            StoreReadError: the store cannot be read.
            NewerFormatError: the key belongs to an artifact of a newer version.
        """
        with suppress(ArtifactMissingError, CorruptArtifactError):
            self.manifest(ref)  # raises an error for an artifact of a newer version
        with self.workspace() as folder:
            draft = Draft(ref, folder, provenance)
            with explain_full_disk(self.url):
                yield draft
            draft.seal()
            self._publish(ref, folder)

    def scratch(self, ref: ArtifactRef) -> Path:
        """Return the local folder for a long stage's state, used until its artifact is published."""
        with writing(self._named_workplace):
            return _made(self._scratch(ref))

    @contextmanager
    def own_scratch(self, ref: ArtifactRef) -> Iterator[Path]:
        """As `scratch`, for one stage at a time; a second one that makes the same artifact has an empty folder."""
        with try_lock(self.scratch(ref)) as is_first:
            if is_first:
                yield self.scratch(ref)
                return
            with self.workspace() as folder:
                yield folder

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Make a temporary local folder; garbage collection deletes it if the process is killed."""
        with writing(self._named_workplace):
            folder = _made(self.workplace / ".staging" / uuid.uuid4().hex)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def drop_scratch(self, ref: ArtifactRef) -> None:
        """Delete the state of a stage that has published, unless another one that makes the same artifact uses it."""
        if (folder := self._scratch(ref)).is_dir():
            with suppress(FileNotFoundError), try_lock(folder) as is_unused:  # another stage may delete it too
                if is_unused:
                    shutil.rmtree(folder, ignore_errors=True)

    def used(self, ref: ArtifactRef) -> None:
        """Record that an artifact was published here and is used now; a read-only store is left unchanged."""
        with suppress(StoreWriteError), writing(self.url):
            self.fs.makedirs(f"{self.root}/.records/{ref.kind}", exist_ok=True)
            self.fs.pipe_file(self._record(ref), ref.model_dump_json().encode())

    def remove(self, ref: ArtifactRef) -> None:
        """Delete an artifact and its local copy, never leaving half of it; do nothing if it is already gone."""
        with writing(self.url):
            if self.local is not None:
                trash = self._trash()
                renamed(self.local / ref.path, trash)  # if killed after this line, `leftovers` finds the folder
                shutil.rmtree(trash, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):  # another collection deleted it
                    self.fs.rm_file(f"{self.path(ref)}/{MANIFEST}")
                    self.fs.rm(self.path(ref), recursive=True)
                shutil.rmtree(self.workplace / ref.path, ignore_errors=True)
            with suppress(FileNotFoundError):
                self.fs.rm_file(self._record(ref))

    def was_published(self, ref: ArtifactRef) -> bool:
        """Return whether this artifact was ever published here, even if it is damaged or deleted."""
        with reading(self.url):
            return bool(self.fs.exists(self.path(ref)) or self.fs.exists(self._record(ref)))

    def last_used(self, manifest: Manifest) -> datetime:
        """Return when an artifact was made, or when `used` was last called for it."""
        with reading(self.url), suppress(FileNotFoundError):
            used: datetime = self.fs.modified(self._record(manifest.ref))
            return max(manifest.created_at, used)
        return manifest.created_at

    def changed(self, ref: ArtifactRef) -> datetime:
        """Return when an artifact was published or last used, by the clock of the store; the first time if it is gone.

        `last_used` is also for artifacts that were copied into the store: they have the time of their making.
        """
        times = [datetime.min.replace(tzinfo=UTC)]
        for path in (f"{self.path(ref)}/{MANIFEST}", self._record(ref)):
            with reading(self.url), suppress(FileNotFoundError, NotADirectoryError):
                times.append(self.fs.modified(path))
        return max(times)

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
                raise StoreWriteError(f"{folder} was deleted while {ref} was written to it. Run again.")
            renamed(final, self._trash())
        sync(final.parent)

    def _trash(self) -> Path:
        """Return a new path on this disk, for a folder that will be deleted."""
        return _made(self.workplace / ".trash") / uuid.uuid4().hex

    def _upload(self, ref: ArtifactRef, folder: Path) -> None:
        """Upload the files to a new folder, then the manifest; other publishers' files are never changed.

        If two publishers race, the later manifest wins; both artifacts are complete.
        """
        sealed = parse_manifest((folder / MANIFEST).read_bytes(), str(folder), ref)
        manifest, target = sealed.model_copy(update={"place": uuid.uuid4().hex}), self.path(ref)
        for name, entry in manifest.files.items():
            put(self.fs, folder / name, f"{target}/{manifest.where(name)}", entry)
        if self.defect(ref) is None:
            self.fs.rm(f"{target}/{manifest.place}", recursive=True)
            return  # another run published the same key in the meantime
        self.fs.pipe_file(f"{target}/{MANIFEST}", manifest.model_dump_json(indent=1).encode())

    def _folder(self, manifest: Manifest) -> Path:
        """Return a local folder with an artifact's files; those of a remote store are copied to its cache first."""
        if self.local is not None:
            return self.local / manifest.ref.path / manifest.place
        return local_copy(self.fs, self.path(manifest.ref), manifest, self.cache)

    def _scratch(self, ref: ArtifactRef) -> Path:
        return self.workplace / ".scratch" / ref.path

    def _record(self, ref: ArtifactRef) -> str:
        return f"{self.root}/.records/{ref.path}.json"


def _manifests(root: str, below: str) -> Iterator[str]:
    """Yield the paths of local manifests (files or folders) down to the depth of artifacts; follow links to folders."""
    for folder, folders, files in os.walk(below, onerror=_refuse, followlinks=True):
        if MANIFEST in (*folders, *files):
            yield f"{folder}/{MANIFEST}"
        depth = folder[len(root) :].count("/")
        folders[:] = [name for name in folders if not name.startswith(".") and depth < _DEEPEST]


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
