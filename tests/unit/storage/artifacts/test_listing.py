"""Listing of a store: artifacts, and files that only look like artifacts."""

import pytest

from storage.artifacts.refs import ArtifactRef, CheckpointRef
from storage.artifacts.store import Store
from storage.filesystem.names import MANIFEST
from tests.hostile import WHY, key

NESTED = ArtifactRef(kind="translations/0123abcd", key=key(2))


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    place = f"memory://{tmp_path.name}-{request.node.name}" if request.param == "memory" else str(tmp_path / "store")
    return Store(place, tmp_path / "cache")


def test_a_model_with_a_manifest_of_its_own_is_a_part_of_its_checkpoint(store, caplog):
    ref = CheckpointRef(key=key(1))
    with store.draft(ref, WHY) as draft:
        (draft.folder / "encoder").mkdir()
        (draft.folder / "encoder" / MANIFEST).write_text("{}")
    assert [each.path for each in store.refs()] == [ref.path]
    assert store.defect(ref) is None
    assert caplog.text == ""


def test_a_stray_manifest_hides_no_artifact_below_it(store, caplog):
    store.fs.makedirs(f"{store.root}/{NESTED.path}")
    for folder in (NESTED.kind, NESTED.path):
        store.fs.pipe_file(f"{store.root}/{folder}/{MANIFEST}", b"{}")
    assert store.refs() == [NESTED]
    assert f"{NESTED.kind} is not named <kind>/<64 hex digits>" in caplog.text
