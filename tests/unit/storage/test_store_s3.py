"""The same promises on an object store, which has no rename: the manifest that is uploaded last decides."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from moto.server import ThreadedMotoServer

from storage.collect import collect, forgotten_loans
from storage.errors import ArtifactMissingError, CorruptArtifactError
from storage.manifest import Provenance
from storage.refs import ArtifactRef, ViewsRef
from storage.store import Store

VIEWS = pl.DataFrame(
    {"sentence_id": [1], "method": ["original"], "text": ["A cat sits."]}, schema_overrides={"sentence_id": pl.UInt64}
)
REF = ViewsRef(key=f"{1:064x}")


@pytest.fixture(scope="module")
def bucket():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}")
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        Store("s3://bucket").fs.mkdir("bucket")
        yield "bucket"
    server.stop()


@pytest.fixture
def store(bucket, tmp_path):
    return Store(f"s3://{bucket}/{tmp_path.name}", tmp_path / "cache")


def put(store: Store) -> None:
    with store.draft(REF, Provenance(stage_version=1, config={})) as draft:
        draft.write(VIEWS)
        (draft.folder / "encoder").mkdir()
        (draft.folder / "encoder" / "config.json").write_text("{}")


def test_round_trip(store):
    put(store)
    assert store.scan(REF).collect().equals(VIEWS)
    assert (store.fetch(REF) / "encoder" / "config.json").read_text() == "{}"
    assert store.refs() == [ArtifactRef(kind="views", key=REF.key)]


def test_object_without_manifest_is_no_artifact(store):
    put(store)
    store.fs.rm_file(f"{store.root}/{REF.path}/manifest.json")
    assert store.refs() == []
    put(store)
    assert store.defect(REF) is None


def test_changed_object_is_refused(store):
    put(store)
    path = f"{store.root}/{REF.path}/views-00000.parquet"
    content = bytearray(store.fs.cat_file(path))
    content[40] ^= 1
    store.fs.pipe_file(path, bytes(content))
    with pytest.raises(CorruptArtifactError, match="manifest says"):
        store.scan(REF)


def test_remove_and_record(store):
    put(store)
    store.remember(REF, b"{}")
    assert store.was_published(REF)
    store.remove(REF)
    assert not store.was_published(REF)


def test_a_lent_file_is_read_by_rows_elsewhere_and_gone_afterwards(store, tmp_path):
    rows = pl.DataFrame({"sentence_id": range(25), "text": [f"s{number}" for number in range(25)]})
    (tmp_path / "plan").mkdir()
    rows.write_parquet(tmp_path / "plan" / "missing.parquet", row_group_size=10)
    elsewhere = Store(store.url, tmp_path / "other-cache")
    with store.lent(tmp_path / "plan" / "missing.parquet") as name:
        for start, count in ((0, 10), (10, 10), (20, 5), (7, 9)):
            assert elsewhere.borrow_rows(name, start, count).equals(rows.slice(start, count))
        assert store.refs() == []
    with pytest.raises(ArtifactMissingError, match="nobody lends this any more"):
        elsewhere.borrow_rows(name, 0, 1)


def test_what_a_killed_run_lent_is_collected_after_a_month(store, tmp_path):
    lent = tmp_path / "plan" / "missing.parquet"
    lent.parent.mkdir()
    VIEWS.write_parquet(lent)
    with store.lent(lent) as name:
        kept, gone = (datetime.now(UTC) + timedelta(days=days) for days in (29, 31))
        assert forgotten_loans(store, timedelta(0), kept) == []
        assert forgotten_loans(store, timedelta(days=60), gone) == []
        assert forgotten_loans(store, timedelta(0), gone) == [name]
        collect(store, [], [], [name])
        assert forgotten_loans(store, timedelta(0), gone) == []
    assert Store(str(tmp_path / "folder")).forgotten_loans(gone) == []
