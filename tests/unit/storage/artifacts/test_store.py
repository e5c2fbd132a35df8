"""The artifact store: artifacts are whole or absent, and safe when a write fails."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from bsl.storage.artifacts import draft as drafts
from bsl.storage.artifacts.garbage_collection import leftovers
from bsl.storage.artifacts.refs import ArtifactRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactMissingError, SchemaError, StorageError, StoreReadError, StoreWriteError
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import PART, VIEWS, WHY, as_nobody, key, put
from tests.servers import ROOT

REF = ViewsRef(key=key(1))


@pytest.mark.parametrize("name", ["store", "run[1]"])
def test_published_artifact_is_read_back(tmp_path, name):
    store = Store(str(tmp_path / name))
    assert put(store) == REF
    assert store.scan(REF).collect().equals(VIEWS)
    manifest = store.check(REF)
    assert (manifest.rows, manifest.provenance.config) == (2, {"seed": 1})
    assert store.refs("views") == [ArtifactRef(kind="views", key=REF.key)]
    put(store)  # the second publisher of a key discards its copy
    assert store.manifest(REF).created_at == manifest.created_at
    with pytest.raises(ArtifactMissingError, match="Run the stage that makes it"):
        store.scan(ViewsRef(key=key(9)))


def test_wrong_columns_are_neither_written_nor_read(store, monkeypatch):
    with pytest.raises(SchemaError, match="sentence_id UInt64, method String, text String"):
        put(store, frame=VIEWS.rename({"text": "sentence"}))
    put(store)
    monkeypatch.setitem(drafts.check_schema.__globals__["TABLES"], "views", pl.Schema({"id": pl.UInt64}))
    with pytest.raises(SchemaError, match="expected id UInt64"):
        store.scan(REF)


def fails(draft):
    draft.write(VIEWS)
    raise RuntimeError("half way")


def writes_onto_a_full_device(draft):
    (draft.folder / PART).symlink_to("/dev/full")
    draft.write(VIEWS)


def loses_its_folder(draft):
    draft.write(VIEWS)
    draft.seal = lambda: shutil.rmtree(draft.folder)


@pytest.mark.parametrize(
    ("stage", "kind", "said"),
    [
        (fails, RuntimeError, "half way"),
        (writes_onto_a_full_device, StoreWriteError, r"the disk is full\. Free space"),
        (loses_its_folder, StoreWriteError, "was deleted while views/"),
    ],
)
def test_failed_stage_publishes_nothing(store, stage, kind, said):
    def publish():
        with store.draft(REF, WHY) as draft:
            stage(draft)

    with pytest.raises(kind, match=said):
        publish()
    assert store.refs() == []
    assert list((store.local / ".staging").iterdir()) == []


def _publish_many(url):
    for number in range(20):
        put(Store(url), number)


def test_killed_publisher_leaves_no_partial_artifact(store):
    killed = store.draft(REF, WHY)
    killed.__enter__().write(VIEWS)  # and no `__exit__`, as after kill -9
    assert store.refs() == []
    assert leftovers(store, timedelta(0), datetime.now(UTC)) == []  # the process may still be running
    for path in (store.local / ".staging").rglob("*"):
        os.utime(path, (0, 0))
    assert len(leftovers(store, timedelta(0), datetime.now(UTC))) == 1
    put(store)
    assert store.scan(REF).collect().height == 2


def test_two_processes_publish_the_same_keys_without_damage(store):
    spawn = multiprocessing.get_context("spawn")
    runs = [spawn.Process(target=_publish_many, args=(store.url,)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]
    assert [store.defect(ref) for ref in store.refs()] == [None] * 20


def test_export_to_folder_and_zip(store, tmp_path):
    put(store)
    folder = store.export(REF, tmp_path / "out")
    assert pl.read_parquet(folder / PART).equals(VIEWS)
    assert (folder / MANIFEST).exists()
    archive = store.export(REF, tmp_path / "out.zip")
    assert sorted(zipfile.ZipFile(archive).namelist()) == [MANIFEST, PART]
    with pytest.raises(StoreWriteError, match="already exists"):
        store.export(REF, folder)


def test_manifest_is_utf_8_in_any_locale(store):
    program = (
        "import sys; from tests.hostile import VIEWS, WHY, Store, ViewsRef, key\n"
        "with Store(sys.argv[1]).draft(ViewsRef(key=key(1)), WHY) as draft:\n"
        "    draft.note({'direction': 'en \\u2192 de'}); draft.write(VIEWS)\n"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", program, store.url], env=plain, cwd=ROOT, check=True)
    assert store.manifest(REF).figures == {"direction": "en \u2192 de"}


@pytest.fixture
def open_store():
    """Yield a store that another user may enter; pytest's own folders may deny that."""
    folder = Path(tempfile.mkdtemp(prefix="bsl-test-"))
    folder.chmod(0o755)
    yield Store(str(folder / "store"))
    shutil.rmtree(folder)


@pytest.mark.parametrize("closed", ["views", "", REF.path, f"{REF.path}/{MANIFEST}", f"{REF.path}/{PART}"])
def test_unreadable_store_folder_raises_store_read_error(open_store, closed):
    put(open_store)
    place = open_store.local / closed
    place.chmod(0)
    try:
        with as_nobody(), pytest.raises(StoreReadError, match=r"reading is not permitted\. Correct the permissions"):
            [open_store.check(listed) for listed in open_store.refs()]
        with as_nobody(), pytest.raises(StorageError):
            put(open_store)
    finally:
        place.chmod(0o755)
    assert open_store.defect(REF) is None
