"""An artifact while it is being made: a staging folder that `Store.draft` publishes when its block ends."""

from __future__ import annotations

import errno
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from storage.errors import StoreWriteError
from storage.files import sync
from storage.manifest import (
    NAME,
    Manifest,
    Provenance,
    TableEntry,
    describe_files,
    host_name,
    installed_versions,
    now,
)
from storage.schemas import check_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from storage.refs import ArtifactRef

ROW_GROUP_ROWS = 131_072  # one group of short sentences is about 10 MB: the unit that streaming readers hold


class Draft:
    """A folder that becomes an artifact.

    Attributes:
        folder: where a stage may also write files of its own (an exported encoder, a picture).
        figures: what was measured on the way; goes into the manifest and never decides a key.
        provenance: from which inputs and by which configuration it is made.
    """

    def __init__(self, ref: ArtifactRef, folder: Path, provenance: Provenance) -> None:
        self.ref = ref
        self.folder = folder
        self.figures: dict[str, JsonValue] = {}
        self.provenance = provenance
        self._tables: dict[str, TableEntry] = {}
        self._parts: dict[str, int] = {}
        self._started = time.monotonic()

    def write(self, frame: pl.DataFrame, table: str | None = None) -> None:
        """Append one Parquet part (zstd) to a table; equal frames give equal bytes.

        Args:
            frame: columns as declared in `storage.schemas`.
            table: the table's name; the artifact's kind unless given.

        Raises:
            SchemaError: the columns are not the declared ones.
            StoreWriteError: the disk is full or read-only.
        """
        name = table or self.ref.kind.partition("/")[0]
        check_schema(name, frame.schema, f"part of {self.ref}")
        part = self._parts.get(name, 0)
        with writing(self.folder):
            frame.write_parquet(
                self.folder / f"{name}-{part:05}.parquet", compression="zstd", row_group_size=ROW_GROUP_ROWS
            )
        self._parts[name] = part + 1
        before = self._tables[name].rows if name in self._tables else 0
        columns = {column: str(dtype) for column, dtype in frame.schema.items()}
        self._tables[name] = TableEntry(rows=before + frame.height, columns=columns)

    def note(self, figures: Mapping[str, JsonValue]) -> None:
        """Record what was measured, beside the artifact's content."""
        self.figures.update(figures)

    def seal(self) -> Manifest:
        """Flush every file to the disk and write the manifest last."""
        manifest = Manifest(
            kind=self.ref.kind,
            key=self.ref.key,
            provenance=self.provenance,
            tables=self._tables,
            files=describe_files(self.folder),
            figures=self.figures,
            versions=installed_versions(),
            host=host_name(),
            created_at=now(),
            duration_s=round(time.monotonic() - self._started, 3),
        )
        with writing(self.folder):
            (self.folder / NAME).write_text(manifest.model_dump_json(indent=1))
            for path in (*self.folder.rglob("*"), self.folder):
                sync(path)
        return manifest


_CAUSES = {
    errno.ENOSPC: "the disk is full; free space or choose another store",
    errno.EDQUOT: "the disk quota is used up; free space or choose another store",
    errno.EROFS: "the file system is read-only; choose a store that can be written",
    errno.EACCES: "writing is not permitted; choose a store that can be written or correct its permissions",
    errno.EPERM: "writing is not permitted; choose a store that can be written or correct its permissions",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another store",
}


@contextmanager
def writing(where: object) -> Iterator[None]:
    """Turn the operating system's refusal to write into an error that says what to do.

    Raises:
        StoreWriteError: naming the place and the remedy. Nothing that was published before is touched.
    """
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        cause = _CAUSES.get(_errno(error), f"{error}; check that the store can be reached")
        raise StoreWriteError(f"cannot write to {where}: {cause}") from error


@contextmanager
def full_disk_named(where: object) -> Iterator[None]:
    """Name a full or read-only disk, whichever library met it, and let every other error pass as it is.

    Raises:
        StoreWriteError: as `writing`.
    """
    try:
        yield
    except StoreWriteError:
        raise
    except Exception as error:
        if _errno(error) in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise StoreWriteError(f"cannot write to {where}: {_CAUSES[_errno(error)]}") from error
        raise


def _errno(error: Exception) -> int:
    """The operating system's number; Polars gives it in words only (`… (os error 28)`)."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    spelled = re.search(r"os error (\d+)", str(error))
    return int(spelled[1]) if spelled else 0
