"""Copies of artifacts for people: a folder or a zip."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from storage.errors import StoreWriteError
from storage.manifest import NAME
from storage.refs import ArtifactRef
from storage.store import Store


def export(store: Store, ref: ArtifactRef, target: Path) -> Path:
    """Copy an intact artifact, manifest included, to a folder or, if the name ends in `.zip`, into an archive.

    Raises:
        StoreWriteError: the target is there already; nothing is overwritten.
        ArtifactMissingError, CorruptArtifactError: there is nothing sound to copy.
    """
    if target.exists():
        raise StoreWriteError(f"{target} exists already; name a new folder or archive")
    manifest = store.check(ref)
    source = store.fetch(ref)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as staging:
        made = Path(staging) / target.name
        if target.suffix == ".zip":
            _zip(source, sorted(manifest.files), manifest.model_dump_json(indent=1), made)
        else:
            for name in manifest.files:
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, made / name)
            (made / NAME).write_text(manifest.model_dump_json(indent=1))
        made.rename(target)
    return target


def _zip(source: Path, names: list[str], manifest: str, made: Path) -> None:
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(source / name, name)
        archive.writestr(NAME, manifest)
