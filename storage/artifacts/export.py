"""Copy an artifact out of the store, to a folder or a zip file."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from storage.errors import StoreWriteError
from storage.filesystem.atomic import whole
from storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store


def export(store: Store, ref: ArtifactRef, target: Path, extra: Path | None = None) -> Path:
    """Copy an intact artifact, manifest included, to a new folder or, if the name ends in `.zip`, into an archive.

    Files in the folder `extra` are added to the copy; they replace files of the same name and are not in the manifest.

    Raises:
        StoreWriteError: the target exists; nothing is overwritten.
        ArtifactMissingError, CorruptArtifactError: the artifact is missing or damaged.
    """
    if target.exists():
        raise StoreWriteError(f"{target} already exists. Name a new folder or archive.")
    manifest = store.check(ref).model_copy(update={"place": ""})  # in a copy, the files are next to the manifest
    source = store.fetch(ref)
    zipped = target.suffix == ".zip"
    with whole(target) as made:
        folder = made.with_suffix("") if zipped else made
        for name in manifest.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)
        if extra is not None:
            shutil.copytree(extra, folder, dirs_exist_ok=True)
        (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1), encoding="utf-8")
        if zipped:
            shutil.make_archive(str(folder), "zip", folder)
    return target
