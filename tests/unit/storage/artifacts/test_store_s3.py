"""The guarantees of the store on an object store, which has no rename: the manifest, uploaded last, decides.

A cache hit reads only manifests from the store.
"""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app

from bsl.storage.artifacts.garbage_collection import collect, leftovers
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import CorruptArtifactError
from tests.hostile import damage
from tests.s3_server import s3_served

VIEWS = pl.DataFrame(
    {"sentence_id": [1], "method": ["original"], "text": ["A cat sits."]}, schema_overrides={"sentence_id": pl.UInt64}
)
REF = ViewsRef(key=f"{1:064x}")


class Counting:
    """moto's S3, which records the files it sends."""

    def __init__(self) -> None:
        self._inner = DomainDispatcherApplication(create_backend_app)
        self.sent: list[str] = []

    def __call__(self, environment, start):
        if environment["REQUEST_METHOD"] == "GET":
            self.sent.append(environment["PATH_INFO"].rpartition("/")[2])
        return self._inner(environment, start)


@pytest.fixture(scope="module")
def traffic():
    counting = Counting()
    with s3_served(counting, "bucket"):
        yield counting


@pytest.fixture
def store(traffic, tmp_path):
    return Store(f"s3://bucket/{tmp_path.name}", tmp_path / "cache")


def put(store: Store) -> None:
    with store.draft(REF, Provenance(stage_version=1, config={})) as draft:
        draft.write(VIEWS)
        (draft.folder / "encoder").mkdir()
        (draft.folder / "encoder" / "config.json").write_text("{}")


def table_of(store: Store) -> str:
    """Return the path of the artifact's table."""
    return f"{store.root}/{REF.path}/{store.manifest(REF).where('views-00000.parquet')}"


def test_artifact_round_trips_through_s3(store):
    put(store)
    assert store.scan(REF).collect().equals(VIEWS)
    assert (store.fetch(REF) / "encoder" / "config.json").read_text() == "{}"
    assert store.refs() == [ArtifactRef(kind="views", key=REF.key)]


def test_s3_objects_without_a_manifest_are_not_an_artifact(store):
    put(store)
    store.fs.rm_file(f"{store.root}/{REF.path}/manifest.json")
    assert store.refs() == []
    put(store)
    assert store.defect(REF) is None


def aged(folder: Path, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(folder, (then, then))


def test_leftovers_include_cached_copies_that_are_unread_or_orphaned(store):
    put(store)
    copy = store.fetch(REF)
    month = timedelta(days=30)
    aged(copy, 29)
    assert leftovers(store, month, datetime.now(UTC)) == []
    aged(copy, 31)
    assert leftovers(store, month, datetime.now(UTC)) == [copy]
    assert store.fetch(REF) == copy
    assert leftovers(store, timedelta(0), datetime.now(UTC)) == []
    aged(copy, 2)
    store.fs.rm(f"{store.root}/{REF.path}", recursive=True)
    assert leftovers(store, month, datetime.now(UTC)) == [copy]
    collect(store, [], [copy])
    assert not copy.exists()


def test_remove_deletes_the_cached_copy_and_the_publication_record(store):
    put(store)
    copy = store.fetch(REF)
    store.remember(REF)
    store.remove(REF)
    assert not copy.exists()
    assert not store.was_published(REF)


def test_leftovers_include_an_interrupted_fetch(store, monkeypatch):
    put(store)
    fetched, under_way = store.fs.get_file, []

    def observed(*where):
        under_way.extend((store.workplace / REF.path).iterdir())
        fetched(*where)

    monkeypatch.setattr(store.fs, "get_file", observed)
    store.fetch(REF)
    (folder,) = set(under_way)
    assert not folder.exists()
    folder.mkdir()  # the state after kill -9
    aged(folder, 2)
    assert leftovers(store, timedelta(days=1), datetime.now(UTC)) == [folder]


def test_cache_hit_reads_only_the_manifest_from_s3(store, traffic):
    put(store)
    traffic.sent.clear()
    assert store.defect(REF) is None
    assert set(traffic.sent) == {"manifest.json"}
    traffic.sent.clear()
    store.scan(REF)
    assert sorted(name for name in traffic.sent if name != "manifest.json") == ["config.json", "views-00000.parquet"]
    traffic.sent.clear()
    assert damage(store, REF) is None
    assert {"config.json", "views-00000.parquet"} < set(traffic.sent)


def rewritten(store: Store, **kept: object) -> None:
    """Change the first byte of the table, but not its size."""
    path = table_of(store)
    content = store.fs.cat_file(path)
    bucket, key, _ = store.fs.split_path(path)
    store.fs.call_s3("put_object", Bucket=bucket, Key=key, Body=b"X" + content[1:], **kept)


def test_sha256_metadata_of_s3_objects_is_trusted_until_read(store):
    put(store)
    claimed = store.fs.metadata(table_of(store))
    assert claimed == {"sha256": store.manifest(REF).files["views-00000.parquet"].sha256}
    rewritten(store, Metadata=claimed)
    assert store.defect(REF) is None
    assert "views-00000.parquet: sha256" in damage(store, REF)
    with pytest.raises(CorruptArtifactError, match=r"views-00000.parquet: the copy has sha256 .* Delete bucket/"):
        store.scan(REF)


def test_object_without_sha256_metadata_is_hashed(store, traffic):
    put(store)
    rewritten(store)
    assert "from the manifest" in store.defect(REF)
    put(store)
    path = table_of(store)
    store.fs.pipe_file(path, store.fs.cat_file(path))  # as a program without checksum metadata writes it
    traffic.sent.clear()
    assert store.defect(REF) is None
    assert "views-00000.parquet" in traffic.sent


def test_copied_store_retains_its_sha256_metadata(store, traffic, tmp_path):
    put(store)
    copy = Store(f"{store.url}-copy", tmp_path / "cache")
    for path in store.fs.find(store.root):
        store.fs.copy(path, path.replace(store.root, copy.root))
    traffic.sent.clear()
    assert copy.defect(REF) is None
    assert set(traffic.sent) == {"manifest.json"}
