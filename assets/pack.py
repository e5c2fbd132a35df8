"""Pack a trained model as an embedded asset: its files, the manifest, then the measured figures."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from assets.pretrain import MODEL
from bsl.storage.assets.catalog import AssetManifest, embedded_manifest
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.digests import describe_files
from bsl.storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store


def pack(store: Store, ref: ArtifactRef, name: str, root: Path, seed: int) -> Path:
    """Copy a model artifact to `<root>/<name>` and describe it there.

    Args:
        store: The artifact's store.
        ref: An artifact of kind `asset`.
        name: Name of an asset of the package; its description, licence and sources are copied.
        root: Folder of embedded assets; an existing asset with that name is replaced.
        seed: Seed of the training.

    Returns:
        The asset's folder. Its figures are added by `record`.
    """
    artifact = store.manifest(ref)
    training: dict[str, JsonValue] = {**artifact.provenance.config, "run": artifact.figures, "artifact": ref.key}
    target = root / name
    with atomic_write(target) as fresh:
        shutil.copytree(store.fetch(ref) / MODEL, fresh)
        changes = {"seed": seed, "training": training, "figures": {}, "files": describe_files(fresh)}
        manifest = embedded_manifest(name).model_copy(update=changes)
        (fresh / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
        shutil.rmtree(target, ignore_errors=True)
    return target


def record(name: str, root: Path, figures: dict[str, JsonValue]) -> None:
    """Add measured figures to the manifest of an asset."""
    path = root / name / MANIFEST
    manifest = AssetManifest.model_validate_json(path.read_bytes())
    added = manifest.model_copy(update={"figures": {**manifest.figures, **figures}})
    path.write_text(added.model_dump_json(indent=1) + "\n")
