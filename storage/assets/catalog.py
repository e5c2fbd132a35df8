"""Embedded assets: small models and texts shipped in the package, for real runs without the Hub.

An asset is a folder `storage/assets/<name>/`. Its `manifest.json` has description, data sources, licence, training,
measured figures and file checksums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue, ValidationError

from bsl.storage.assets.embedded import MANIFEST, embedded_folder
from bsl.storage.errors import AssetError
from bsl.storage.filesystem.digests import FileEntry, files_digest
from bsl.storage.record import Record

if TYPE_CHECKING:
    from pathlib import Path


class AssetSource(Record):
    """A public dataset that an asset was made from."""

    name: str
    licence: str
    origin: str
    """Upstream repository with commit and path."""
    use: str
    """The part that was used."""


class AssetManifest(Record):
    """Description and provenance of an embedded asset."""

    format: Literal[1] = 1
    name: str
    kind: Literal[
        "translation-model", "masked-lm", "sentence-encoder", "labelled-pairs", "scored-pairs", "held-out-text"
    ]
    description: str
    """One sentence, with architecture and size."""
    licence: str
    sources: list[AssetSource]
    seed: int = Field(ge=0)
    training: dict[str, JsonValue] = Field({})
    """Configs, steps, minutes, losses; empty for texts."""
    figures: dict[str, JsonValue] = Field({})
    """Scores on held-out data; names include the protocol."""
    files: dict[str, FileEntry]

    @property
    def digest(self) -> str:
        """sha256 over the names and hashes of all files; part of artifact keys."""
        return files_digest(self.files)


def embedded_manifest(name: str, root: Path | None = None) -> AssetManifest:
    """Return the manifest of an asset, without checking its files.

    Raises:
        AssetError: there is no such asset, or its manifest cannot be read.
    """
    path = embedded_folder(name, root) / MANIFEST
    try:
        return AssetManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise AssetError(
            f"{path}: not an asset manifest ({error.errors()[0]['msg']}). Reinstall bsl-pipeline."
        ) from error
