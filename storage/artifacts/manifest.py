"""`manifest.json`: an artifact's kind, provenance (settings and inputs), tables and file checksums."""

from __future__ import annotations

import json
import platform
import re
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from typing import Annotated, Final, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from bsl.storage.artifacts.refs import KIND, ArtifactRef, deletion
from bsl.storage.errors import CorruptArtifactError, NewerFormatError
from bsl.storage.filesystem.digests import SHA256, FileEntry, files_digest
from bsl.storage.filesystem.names import FileName
from bsl.storage.record import Record

FORMAT = 3
MOST_BYTES: Final = 64 << 20
"""Maximum size of a manifest; the largest real ones list some thousand files and are below 1 MB."""
_PART: Final = re.compile(r"(?P<table>[^/]+)-(?P<number>[0-9]{5})\.parquet")
_MOST: Final = 2**63 - 1
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)  # valid in every time zone
_RECORDED = ("bsl-pipeline", "polars", "torch", "transformers", "tokenizers", "ctranslate2", "numpy")


class TableEntry(Record):
    """One Parquet table of an artifact: its parts are the files `<table>-00000.parquet` and so on."""

    rows: int = Field(ge=0, le=_MOST)
    columns: dict[str, str]


class InputEntry(ArtifactRef):
    """An artifact that this one was made from."""

    digest: str
    """Content digest when it was read; if the input was made again with other content, this artifact is stale."""


class Provenance(Record):
    """The stage, configuration and inputs of an artifact, known before it is made."""

    stage: str = ""
    """Name of the stage that made it; empty outside a stage."""
    stage_version: int
    config: dict[str, JsonValue]
    inputs: dict[str, InputEntry] = Field({})
    run: str = ""
    """The Prefect run that made it; empty outside a run."""


class Figures(BaseModel):
    """Figures that a stage records in a manifest and other code reads; a field's alias is its name there."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


F = TypeVar("F", bound=Figures)


class Manifest(Record):
    """The record that makes a folder an artifact."""

    format: int = FORMAT
    kind: str = Field(pattern=KIND)
    key: str = Field(pattern=SHA256)
    provenance: Provenance
    tables: dict[str, TableEntry]
    files: dict[FileName, FileEntry] = Field(min_length=1)
    """By path relative to `place`."""
    place: str = Field("", pattern=r"^([0-9a-f]{32})?$")
    """Subfolder with the files; each publisher to an object store has its own. Empty if the files are next to the
    manifest."""
    figures: dict[str, JsonValue] = Field({})
    """Measurements of the run (counts, throughput); never part of a key."""
    versions: dict[str, str]
    host: str
    created_at: Annotated[AwareDatetime, Field(ge=_FIRST, le=_LAST)]
    duration_s: float = Field(ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_complete(self) -> Manifest:
        """Check that every table has all its parts, every part a table, and no file has the path of a folder."""
        parts: dict[str, set[int]] = {name: set() for name in self.tables}
        for name in self.files:
            if part := _PART.fullmatch(name):
                parts.setdefault(part["table"], set()).add(int(part["number"]))
        for table, numbers in parts.items():
            if table not in self.tables or numbers != set(range(len(numbers))) or not numbers:
                raise ValueError(f"table {table!r:.80} does not match its parts {sorted(numbers)[:5]}")
        if any(str(folder) in self.files for name in self.files for folder in PurePosixPath(name).parents):
            raise ValueError("a file has the path of another file's folder")
        return self

    def parts(self, table: str) -> list[str]:
        """Return the files of a table in order; empty if there is no such table."""
        return sorted(name for name in self.files if (part := _PART.fullmatch(name)) and part["table"] == table)

    def where(self, name: str) -> str:
        """Return the path of a file, relative to the artifact's folder."""
        return f"{self.place}/{name}" if self.place else name

    @property
    def ref(self) -> ArtifactRef:
        """The reference to this artifact."""
        return ArtifactRef(kind=self.kind, key=self.key)

    @property
    def digest(self) -> str:
        """sha256 over the names and hashes of all files: equal for equal content.

        HTML pages are excluded, because they contain times and durations, as `figures` does.
        """
        return files_digest({name: entry for name, entry in self.files.items() if not name.endswith(".html")})

    def figures_as(self, model: type[F]) -> F:
        """Return the figures, validated as the model of the stage that made the artifact.

        Raises:
            CorruptArtifactError: a figure is missing or of another type.
        """
        try:
            return model.model_validate(self.figures)
        except ValidationError as error:
            raise CorruptArtifactError(
                f"{self.ref}: figures are no {model.__name__} ({_first_fault(error)}). {deletion(self.ref)}"
            ) from error

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables.values())

    @property
    def size(self) -> int:
        """Bytes of all files except the manifest."""
        return sum(entry.size for entry in self.files.values())


def parse_manifest(text: bytes, where: str, ref: ArtifactRef) -> Manifest:
    """Parse and validate the manifest in the folder of `ref`; `where` is its path, for messages.

    Raises:
        NewerFormatError: its format is above `FORMAT`.
        CorruptArtifactError: it is not a manifest, or the manifest of another artifact.
    """
    try:
        head = _Head.model_validate_json(text)
        if head.format > FORMAT:
            raise NewerFormatError(
                f"{where}: manifest format {head.format}, this version reads {FORMAT}. "
                "Upgrade bsl-pipeline or use another store."
            )
        if head.format < FORMAT:
            raise CorruptArtifactError(
                f"{where}: manifest format {head.format}, this version reads {FORMAT}. {deletion(ref)}"
            )
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        raise CorruptArtifactError(f"{where}: not a manifest ({_first_fault(error)}). {deletion(ref)}") from error
    if manifest.ref.path != ref.path:
        raise CorruptArtifactError(f"{where}: manifest of {manifest.ref}, expected that of {ref}. {deletion(ref)}")
    return manifest


class _Head(BaseModel):
    format: int = Field(ge=1, le=_MOST)


def _first_fault(error: ValidationError) -> str:
    """Return the first error without the offending text, which must not reach terminals and pages."""
    fault = error.errors(include_url=False, include_input=False)[0]
    field = json.dumps(".".join(str(part) for part in fault["loc"]))[1:-1]
    return f"{field:.80}: {fault['msg']}" if field else fault["msg"]


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change a result."""
    return {"python": platform.python_version(), **{name: _installed(name) for name in _RECORDED}}


@lru_cache  # Python parses all of a package's metadata at each call, a tenth of the time of a small shard
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
