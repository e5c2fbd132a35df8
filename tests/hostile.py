"""Damage that a user with write access can do to a store."""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import ArtifactRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactMissingError, CorruptArtifactError
from bsl.storage.filesystem.names import MANIFEST

VIEWS = pl.DataFrame(
    {"sentence_id": [1, 2], "method": ["original", "bt-de"], "text": ["A cat sits.", "A cat is sitting."]},
    schema_overrides={"sentence_id": pl.UInt64},
)
WHY = Provenance(stage_version=1, config={"seed": 1})
PART = "views-00000.parquet"
SHA = "0" * 64


def key(number: int) -> str:
    return f"{number:064x}"


def put(store: Store, number: int = 1, why: Provenance = WHY, frame: pl.DataFrame = VIEWS) -> ViewsRef:
    ref = ViewsRef(key=key(number))
    with store.draft(ref, why) as draft:
        draft.write(frame)
    return ref


def made_from(store: Store, source: ViewsRef) -> Provenance:
    """Return the provenance of an artifact that is made from another one."""
    entry = InputEntry(kind="views", key=source.key, digest=store.manifest(source).digest)
    return WHY.model_copy(update={"inputs": {"views": entry}})


def damage(store: Store, ref: ArtifactRef) -> str | None:
    """Return why an artifact is not whole, with every byte hashed; None if it is."""
    try:
        store.check(ref, every_byte=True)
    except (ArtifactMissingError, CorruptArtifactError) as error:
        return str(error)
    return None


def folder_of(store: Store, ref: ArtifactRef) -> Path:
    assert store.local is not None
    return store.local / ref.path


def rewrite(store: Store, ref: ArtifactRef, **fields: object) -> None:
    """Change top-level fields of a manifest; None removes a field."""
    path = folder_of(store, ref) / MANIFEST
    record = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: value for name, value in record.items() if value is not None}))


def a_pipe(path: Path) -> None:
    """Replace a file with a named pipe."""
    path.unlink()
    os.mkfifo(path)


@contextmanager
def as_nobody():
    """Run without root's right to read everything; unchanged for other users."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def made_long_ago(store: Store) -> None:
    """Make all artifacts old and unused since."""
    for ref in store.refs():
        rewrite(store, ref, created_at="2020-01-01T00:00:00Z")
    shutil.rmtree(store.workplace / ".records", ignore_errors=True)
