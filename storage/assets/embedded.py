"""Find and check the models and texts shipped in the package; `catalog` describes them.

This module suffices to load an embedded encoder; it imports neither pydantic nor fsspec.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.storage.errors import AssetError

if TYPE_CHECKING:
    from collections.abc import Collection

EMBEDDED: Final = "embedded:"  # prefix of an embedded asset's name in recipes
MANIFEST: Final = "manifest.json"
MODELS: Final = ("sentence-encoder", "masked-lm", "translation-model")
"""Kinds of assets that a recipe names as models."""
TEXTS: Final = ("labelled-pairs", "scored-pairs", "held-out-text")
"""Kinds of assets that contain sentences."""


def assets_root() -> Path:
    """Return the folder of all embedded assets."""
    return Path(str(files("bsl.storage"))) / "assets"


def embedded_names(root: Path | None = None, kinds: Collection[str] = ()) -> list[str]:
    """Return the names of the existing assets, sorted; with `kinds`, only those of these kinds."""
    manifests = sorted((root or assets_root()).glob(f"*/{MANIFEST}"))
    return [path.parent.name for path in manifests if not kinds or _kind(path) in kinds]


def embedded_folder(name: str, root: Path | None = None, kinds: Collection[str] = ()) -> Path:
    """Return the folder of an asset, without checking its files.

    Args:
        name: name of the asset.
        root: folder of the assets; by default the package's own.
        kinds: the kinds that the caller can use; by default all.

    Raises:
        AssetError: there is no such asset, or it is of another kind.
    """
    folder = root or assets_root()
    if name in (known := embedded_names(folder, kinds)):
        return folder / name
    from bsl.storage.filesystem.spelling import did_you_mean  # not needed to load an encoder

    listed = f"Known assets: {', '.join(known) or 'none'} (in {folder})"
    if name in embedded_names(folder):
        kind = _kind(folder / name / MANIFEST)
        what = "a model" if kinds == MODELS else "text"
        raise AssetError(f"{EMBEDDED}{name} is not {what}: it contains {kind}, expected {' or '.join(kinds)}. {listed}")
    raise AssetError(f"unknown embedded asset {name!r}.{did_you_mean(name, known, prefix=EMBEDDED)} {listed}")


def _kind(manifest: Path) -> str:
    """Return the kind of an asset; empty if its manifest is damaged."""
    try:
        return str(json.loads(manifest.read_bytes())["kind"])
    except (ValueError, KeyError, TypeError):
        return ""


def embedded_path(name: str, root: Path | None = None, kinds: Collection[str] = ()) -> Path:
    """Return the folder of an embedded asset, after checking every file's sha256 against the manifest.

    Args:
        name: name of the asset, such as `marian-mini-en-mul`.
        root: folder of the assets; by default the package's own.
        kinds: the kinds that the caller can use; by default all.

    Returns:
        A local folder, valid for `from_pretrained` or a Parquet reader; callers must not write to it.

    Raises:
        AssetError: as for `embedded_folder`, or its manifest cannot be read, or a file is missing or damaged.
    """
    folder = embedded_folder(name, root, kinds)
    if problem := _problem(folder):
        raise AssetError(f"{folder}/{problem}. Reinstall bsl-pipeline.")
    return folder


def _problem(folder: Path) -> str:
    """Return the first fault of an asset's files; empty if they match the manifest."""
    try:
        expected = {
            name: entry["sha256"] for name, entry in json.loads((folder / MANIFEST).read_bytes())["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST}: not an asset manifest ({error!r})"
    for name, sha256 in expected.items():
        if not (folder / name).is_file():
            return f"{name}: missing from the embedded asset"
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            return f"{name}: sha256 {found[:16]}…, expected {sha256[:16]}… from the manifest"
    return ""
