"""An unpublished artifact: a staging folder that `Store.draft` publishes when its block ends."""

from __future__ import annotations

import socket
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from bsl.storage.artifacts.manifest import Figures, Manifest, Provenance, TableEntry, installed_versions
from bsl.storage.artifacts.schemas import check_schema
from bsl.storage.errors import CorruptArtifactError
from bsl.storage.filesystem.atomic import sync
from bsl.storage.filesystem.digests import describe_files
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.filesystem.os_errors import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from bsl.storage.artifacts.refs import ArtifactRef

ROW_GROUP_ROWS = 131_072  # about 10 MB of short sentences; streaming readers load one row group at a time


class Draft:
    """A folder that becomes an artifact.

    Attributes:
        folder: staging folder; a stage may write other files into it (an exported encoder, an image).
        figures: measurements of the run, for the manifest; never part of a key.
        provenance: inputs and configuration.
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
        """Append a frame as one part; see `write_all`."""
        self.write_all((frame,), table)

    def write_all(self, frames: Iterable[pl.DataFrame], table: str | None = None) -> int:
        """Append frames as one Parquet part (zstd), one frame in memory at a time.

        The bytes depend only on the rows, not on their division into frames.

        Args:
            frames: frames with the columns of `bsl.storage.artifacts.schemas`; at least one, which may be empty.
            table: name of the table; the artifact's kind by default.

        Returns:
            The number of rows of the part.

        Raises:
            SchemaError: the columns differ from the declared ones.
            StoreWriteError: the disk is full or read-only.
            ValueError: there are no frames.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            parts: list[pl.LazyFrame] = []
            rows, latest = 0, None
            for frame in frames:
                # Keep the latest frame in memory: most tables come as a single frame.
                if latest is not None and latest.height:
                    path = Path(scratch) / f"{len(parts):06d}.parquet"
                    with writing(self.folder):
                        latest.write_parquet(path, compression="lz4", statistics=False)
                    parts.append(pl.scan_parquet(path, glob=False))
                latest, rows = frame, rows + frame.height
            if latest is None:
                raise ValueError(f"{self.ref}: no frames, expected at least one, which may be empty")
            whole = pl.concat([*parts, latest.lazy()]) if parts else latest.lazy()
            name, schema = self._name(table), whole.collect_schema()
            check_schema(name, schema, f"part of {self.ref}")
            number = self._parts.get(name, 0)
            with writing(self.folder):
                path = self.folder / f"{name}-{number:05}.parquet"
                whole.sink_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        self._parts[name] = number + 1
        before = self._tables[name].rows if name in self._tables else 0
        self._tables[name] = TableEntry(rows=before + rows, columns={key: str(kind) for key, kind in schema.items()})
        return rows

    def scan(self, table: str | None = None) -> pl.LazyFrame:
        """Return the rows written to a table so far, read lazily from its parts."""
        return pl.scan_parquet(sorted(self.folder.glob(f"{self._name(table)}-*.parquet")), glob=False)

    def _name(self, table: str | None) -> str:
        return table or self.ref.kind.partition("/")[0]

    def note(self, figures: Figures | Mapping[str, JsonValue]) -> None:
        """Add figures to the manifest; of a model, those that were given."""
        if isinstance(figures, Figures):
            figures = figures.model_dump(mode="json", by_alias=True, exclude_unset=True)
        self.figures.update(figures)

    def seal(self) -> Manifest:
        """Flush every file to the disk and write the manifest last.

        Raises:
            CorruptArtifactError: the stage wrote something other than regular files and folders.
            StoreWriteError: the disk is full or read-only.
        """
        for path in self.folder.rglob("*"):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise CorruptArtifactError(
                    f"{path}: neither a file nor a folder; a stage may publish only regular files"
                )
        manifest = Manifest(
            kind=self.ref.kind,
            key=self.ref.key,
            provenance=self.provenance,
            tables=self._tables,
            files=describe_files(self.folder),
            figures=self.figures,
            versions=installed_versions(),
            host=socket.gethostname(),
            created_at=datetime.now(UTC),
            duration_s=round(time.monotonic() - self._started, 3),
        )
        with writing(self.folder):
            (self.folder / MANIFEST).write_text(manifest.model_dump_json(indent=1), encoding="utf-8")
            for path in (*self.folder.rglob("*"), self.folder):
                sync(path)
        return manifest
