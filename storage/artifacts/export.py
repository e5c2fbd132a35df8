"""Copy an artifact out of the store, to a folder or a zip file."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

from storage.errors import StoreWriteError
from storage.filesystem.atomic import whole
from storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store


def export(store: Store, ref: ArtifactRef, target: Path, extra: Path | None = None) -> Path:
    """Copy an intact artifact, manifest included, to a folder or, if the name ends in `.zip`, into an archive.

    Args:
        store: store of the artifact.
        ref: the artifact.
        target: path that does not exist yet.
        extra: folder whose files are added to the copy, over files of the same name; the manifest does not list them.

    Raises:
        StoreWriteError: the target exists; nothing is overwritten.
        ArtifactMissingError, CorruptArtifactError: the artifact is missing or damaged.
    """
    if target.exists():
        raise StoreWriteError(f"{target} exists already; name a new folder or archive")
    manifest = store.check(ref).model_copy(update={"place": ""})  # in a copy, the files are next to the manifest
    source = store.fetch(ref)
    with whole(target) as made:
        if target.suffix == ".zip":
            _zip(source, sorted(manifest.files), manifest.model_dump_json(indent=1), made, extra)
        else:
            for name in manifest.files:
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, made / name)
            if extra is not None:
                shutil.copytree(extra, made, dirs_exist_ok=True)
            (made / MANIFEST).write_text(manifest.model_dump_json(indent=1), encoding="utf-8")
    return target


def _zip(source: Path, names: list[str], manifest: str, made: Path, extra: Path | None) -> None:
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(source / name, name)
        if extra is not None:
            for path in sorted(extra.rglob("*")):
                archive.write(path, path.relative_to(extra))
        archive.writestr(MANIFEST, manifest)
