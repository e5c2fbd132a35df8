"""`manifest.json`: what an artifact is, why it is so, whether it is intact, and how to make it again."""

from __future__ import annotations

import hashlib
import platform
import socket
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from storage.digest import file_sha256
from storage.errors import CorruptArtifactError, NewerFormatError
from storage.refs import ArtifactRef

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2  # 2: the stage's name; manifests of format 1 are still read
NAME = "manifest.json"
_RECORDED = ("bsl-pipeline", "polars", "torch", "transformers", "tokenizers", "ctranslate2", "numpy")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FileEntry(_Record):
    """One file of an artifact."""

    size: int = Field(ge=0)
    """Bytes."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class TableEntry(_Record):
    """One Parquet table of an artifact: its parts are the files `<table>-*.parquet`."""

    rows: int = Field(ge=0)
    columns: dict[str, str]


class InputEntry(_Record):
    """An artifact that this one was made from."""

    kind: str
    key: str
    digest: str
    """Content digest at the time; if the input is made again and differs, this artifact no longer counts."""


class Provenance(_Record):
    """What decided an artifact, known before it is made."""

    stage: str = ""
    """Name of the stage that made it; empty in manifests of format 1."""
    stage_version: int
    config: dict[str, JsonValue]
    inputs: dict[str, InputEntry] = {}
    run: str = ""
    """The Prefect run that made it, empty outside one."""


class Manifest(_Record):
    """The record that makes a folder an artifact."""

    format: int = FORMAT
    kind: str
    key: str
    provenance: Provenance
    tables: dict[str, TableEntry]
    files: dict[str, FileEntry]
    figures: dict[str, JsonValue] = {}
    """What was measured on the way (counts, throughput); never part of a key."""
    versions: dict[str, str]
    host: str
    created_at: datetime
    duration_s: float = Field(ge=0)

    @property
    def ref(self) -> ArtifactRef:
        """The reference that finds this artifact."""
        return ArtifactRef(kind=self.kind, key=self.key)

    @property
    def digest(self) -> str:
        """sha256 over the names and hashes of all files: equal for equal content."""
        lines = "\n".join(f"{name} {entry.sha256}" for name, entry in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables.values())

    @property
    def size(self) -> int:
        """Bytes of all files, without the manifest."""
        return sum(entry.size for entry in self.files.values())


def parse_manifest(text: bytes, where: str) -> Manifest:
    """Read a manifest.

    Raises:
        NewerFormatError: its format is above `FORMAT`.
        CorruptArtifactError: it is no manifest.
    """
    try:
        head = _Head.model_validate_json(text)
        if head.format > FORMAT:
            raise NewerFormatError(
                f"{where}: manifest format {head.format}, this version reads up to {FORMAT}; "
                "upgrade bsl-pipeline or use another store"
            )
        return Manifest.model_validate_json(text)
    except ValueError as error:
        raise CorruptArtifactError(
            f"{where}: not a manifest ({str(error).splitlines()[0]}); delete the artifact and run its stage again"
        ) from error


class _Head(BaseModel):
    format: int


def describe_files(folder: Path) -> dict[str, FileEntry]:
    """Size and sha256 of every file below `folder`, the manifest aside, by relative POSIX path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / NAME)
    return {
        path.relative_to(folder).as_posix(): FileEntry(size=path.stat().st_size, sha256=file_sha256(path))
        for path in files
    }


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a result."""
    versions = {"python": platform.python_version()}
    for name in _RECORDED:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def host_name() -> str:
    """The machine, for people who look for it later."""
    return socket.gethostname()


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)
