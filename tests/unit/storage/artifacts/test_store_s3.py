"""The guarantees of the store on an object store, which has no rename: the manifest, uploaded last, decides.

A cache hit reads only manifests from the store.
"""

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from bsl.storage.artifacts.garbage_collection import collect, delete, leftovers
from bsl.storage.artifacts.leases import begin_lease, release
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactInUseError, CorruptArtifactError
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import PART, VIEWS, WHY, damage, put
from tests.s3_server import Moto, s3_served

MONTH = timedelta(days=30)


@pytest.fixture(scope="module")
def traffic():
    moto = Moto()
    with s3_served(moto, "bucket"):
        yield moto


@pytest.fixture
def store(traffic, tmp_path):
    return Store(f"s3://bucket/{tmp_path.name}", tmp_path / "cache")


def table_of(store, ref):
    return f"{store.root}/{ref.path}/{store.manifest(ref).where(PART)}"


def aged(folder, days):
    then = time.time() - days * 86_400
    os.utime(folder, (then, then))


def left(store, older_than=MONTH):
    return leftovers(store, older_than, datetime.now(UTC))


def test_artifact_on_s3_is_what_its_manifest_lists_and_is_removed_with_its_copy_and_record(store):
    ref = put(store)
    copy = store.fetch(ref)
    store.used(ref)
    store.remove(ref)
    assert not copy.exists()
    assert not store.was_published(ref)
    with store.draft(ref, WHY) as draft:
        draft.write(VIEWS)
        (draft.folder / "encoder").mkdir()
        (draft.folder / "encoder" / "config.json").write_text("{}")
    assert store.scan(ref).collect().equals(VIEWS)
    assert (store.fetch(ref) / "encoder" / "config.json").read_text() == "{}"
    assert store.refs() == [ArtifactRef(kind="views", key=ref.key)]
    store.fs.rm_file(f"{store.root}/{ref.path}/manifest.json")
    assert store.refs() == []
    put(store)
    assert store.defect(ref) is None


def test_cached_copies_are_leftovers_if_unread_or_orphaned(store):
    ref = put(store)
    copy = store.fetch(ref)
    aged(copy, 29)
    assert left(store) == []
    aged(copy, 31)
    assert left(store) == [copy]
    assert store.fetch(ref) == copy
    assert left(store, timedelta(0)) == []
    aged(copy, 2)
    store.fs.rm(f"{store.root}/{ref.path}", recursive=True)
    assert left(store) == [copy]
    collect(store, [], [copy])
    assert not copy.exists()


def test_leftovers_include_an_interrupted_fetch(store, monkeypatch):
    ref = put(store)
    fetched, under_way = store.fs.get_file, []

    def observed(*where):
        under_way.extend((store.workplace / ref.path).iterdir())
        fetched(*where)

    monkeypatch.setattr(store.fs, "get_file", observed)
    store.fetch(ref)
    (folder,) = set(under_way)
    assert not folder.exists()
    folder.mkdir()  # the state after kill -9
    aged(folder, 2)
    assert left(store, timedelta(days=1)) == [folder]


def test_cache_hit_reads_only_the_manifest_from_s3(store, traffic, tmp_path):
    ref = put(store)
    assert traffic.files(store.defect, ref) == (None, {"manifest.json"})
    assert traffic.files(store.scan, ref)[1] == {"manifest.json", PART}
    assert traffic.files(damage, store, ref) == (None, {"manifest.json", PART})
    copy = Store(f"{store.url}-copy", tmp_path / "cache")  # its objects have the checksums too
    for path in store.fs.find(store.root):
        store.fs.copy(path, path.replace(store.root, copy.root))
    assert traffic.files(copy.defect, ref) == (None, {"manifest.json"})


def rewritten(store, ref, **kept):
    """Change the first byte of the table, but not its size."""
    path = table_of(store, ref)
    content = store.fs.cat_file(path)
    bucket, key, _ = store.fs.split_path(path)
    store.fs.call_s3("put_object", Bucket=bucket, Key=key, Body=b"X" + content[1:], **kept)


def test_sha256_metadata_of_s3_objects_is_trusted_until_read(store):
    ref = put(store)
    claimed = store.fs.metadata(table_of(store, ref))
    assert claimed == {"sha256": store.manifest(ref).files[PART].sha256}
    rewritten(store, ref, Metadata=claimed)
    assert store.defect(ref) is None
    assert f"{PART}: sha256" in damage(store, ref)
    with pytest.raises(CorruptArtifactError, match=r"views-00000.parquet: the copy has sha256 .* Delete it"):
        store.scan(ref)


def test_object_without_sha256_metadata_is_hashed(store, traffic):
    ref = put(store)
    rewritten(store, ref)
    assert "from the manifest" in store.defect(ref)
    put(store)
    path = table_of(store, ref)
    store.fs.pipe_file(path, store.fs.cat_file(path))  # as a program without checksum metadata writes it
    assert traffic.files(store.defect, ref) == (None, {"manifest.json", PART})


def test_deleted_artifact_leaves_no_object_even_if_its_manifest_is_unreadable(store):
    ref = put(store)
    store.fs.pipe_file(f"{store.path(ref)}/{MANIFEST}", b"{")
    begin_lease(store, "run")
    store.used(ref)
    with pytest.raises(ArtifactInUseError):
        delete(store, [ref])
    release(store, "run")
    delete(store, [ref])
    assert [path for path in store.fs.find(store.root) if ref.key in path] == []
