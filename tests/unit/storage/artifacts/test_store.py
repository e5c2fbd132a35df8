"""The artifact store: artifacts are whole or absent, and safe when a write fails."""

import errno
import logging
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
from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactMissingError, SchemaError, StorageError, StoreReadError, StoreWriteError
from bsl.storage.filesystem.names import MANIFEST
from tests import corpora
from tests.hostile import PART, VIEWS, WHY, as_nobody, key, put
from tests.servers import ROOT

REF = ViewsRef(key=key(1))
CHECKPOINT = CheckpointRef(key=key(1))


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


@pytest.mark.parametrize("name", ["out.tar", "out.tar.gz", "out.TGZ", "out.ZIP"])
def test_export_to_another_archive_is_refused(store, tmp_path, name):
    """Regression: it was a folder of that name."""
    put(store)
    with pytest.raises(StoreWriteError, match=r"archives are not written\. Name a folder, or a file that ends"):
        store.export(REF, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_export_to_a_full_disk_leaves_nothing(store, tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    put(store)
    monkeypatch.setattr("shutil.copyfile", full_disk)
    with pytest.raises(StoreWriteError, match=r"cannot write to .*/full/out: the disk is full\. Free space"):
        store.export(REF, tmp_path / "full" / "out")
    assert list((tmp_path / "full").iterdir()) == []


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


def test_two_trainings_of_one_checkpoint_have_a_folder_each(store):
    """They wrote each other's job, error and speed, and the first to end deleted the other's snapshots."""
    store.drop_scratch(CHECKPOINT)
    assert not (store.workplace / ".scratch").exists()
    with store.own_scratch(CHECKPOINT) as used:  # the lock of a file, which another block or process does not get
        (used / "step-1").mkdir()
        with store.own_scratch(CHECKPOINT) as other:
            assert other != used
            assert list(other.iterdir()) == []
        assert not other.exists()
        store.drop_scratch(CHECKPOINT)  # the second has published
        assert (used / "step-1").is_dir()
    with store.own_scratch(CHECKPOINT) as resumed:
        assert resumed == used == store.scratch(CHECKPOINT)
        assert (resumed / "step-1").is_dir()
    store.drop_scratch(CHECKPOINT)
    assert list((store.workplace / ".scratch" / "checkpoint").iterdir()) == []


MEMORY, OTHER = "0123456789abcdef", "fedcba9876543210"


def publish(store, name, texts, memory=MEMORY):
    columns = {"lang": "de", "translator": memory, "n_tokens": 1, "score": -0.5}
    ids = pl.Series("sentence_id", list(texts), pl.UInt64)
    part = pl.DataFrame({"sentence_id": ids, "text": list(texts.values()), **columns})
    return corpora.publish(store, ArtifactRef(kind=f"translations/{memory}", key=key(name)), part)


def held(store, *seen, memory=MEMORY):
    parts = store.intact(f"translations/{memory}", seen)
    return [(ref.key[-1], dict(part.select("sentence_id", "text").collect().rows())) for ref, part in parts]


def test_parts_of_one_translator_are_sorted_and_exclude_seen_keys(store):
    assert held(store) == []
    publish(store, 9, {1: "later by name", 2: "zwei"})
    first = publish(store, 4, {1: "first by name"})
    publish(store, 1, {1: "eins"}, OTHER)
    assert held(store) == [("4", {1: "first by name"}), ("9", {1: "later by name", 2: "zwei"})]
    assert held(store, first.key) == [("9", {1: "later by name", 2: "zwei"})]
    assert held(store, memory=OTHER) == [("1", {1: "eins"})]


def test_damaged_translation_memory_part_is_excluded_with_a_warning(store, caplog):
    damaged = publish(store, 1, {1: "eins"})
    publish(store, 2, {2: "zwei"})
    file = next((Path(store.root) / damaged.path).glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with caplog.at_level(logging.WARNING):
        assert held(store) == [("2", {2: "zwei"})]
    assert f"{damaged} is not used" in caplog.text
