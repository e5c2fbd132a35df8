"""Listing of a store: artifacts, and files that only look like artifacts."""

import errno

import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import StoreReadError
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import WHY, key, put

NESTED = ArtifactRef(kind="translations/0123abcd", key=key(2))


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    place = f"memory://{tmp_path.name}-{request.node.name}" if request.param == "memory" else str(tmp_path / "store")
    return Store(place, tmp_path / "cache")


def test_manifest_inside_a_checkpoint_is_not_listed_separately(store, caplog):
    ref = CheckpointRef(key=key(1))
    with store.draft(ref, WHY) as draft:
        (draft.folder / "encoder").mkdir()
        (draft.folder / "encoder" / MANIFEST).write_text("{}")
    assert [each.path for each in store.refs()] == [ref.path]
    assert store.defect(ref) is None
    assert caplog.text == ""


def test_stray_manifest_does_not_hide_nested_artifacts(store, caplog):
    store.fs.makedirs(f"{store.root}/{NESTED.path}")
    for folder in (NESTED.kind, NESTED.path):
        store.fs.pipe_file(f"{store.root}/{folder}/{MANIFEST}", b"{}")
    assert store.refs() == store.refs(NESTED.kind) == [NESTED]
    assert f"{NESTED.kind} is not named <kind>/<64 hex digits>" in caplog.text


class Closed(MemoryFileSystem):
    """A file system without a flat listing, in which another user's folder cannot be listed."""

    protocol, find = "closed", AbstractFileSystem.find

    def ls(self, path, detail=True, **options):
        if path.endswith("/views"):
            raise PermissionError(errno.EACCES, "not permitted", path)
        return super().ls(path, detail=detail, **options)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_unlistable_remote_folder_raises_store_read_error(store, monkeypatch):
    """fsspec's own walk skips it, and garbage collection would delete what its reports need."""
    put(store)
    monkeypatch.setattr(store, "fs", Closed())
    with pytest.raises(StoreReadError, match="reading is not permitted"):
        store.refs()
