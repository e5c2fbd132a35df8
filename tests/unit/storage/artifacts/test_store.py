"""The artifact store: artifacts are whole or absent, verified when read, and safe when a write fails."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from bsl.storage.artifacts import draft as drafts
from bsl.storage.artifacts.garbage_collection import leftovers
from bsl.storage.artifacts.refs import ArtifactRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import (
    ArtifactMissingError,
    CorruptArtifactError,
    NewerFormatError,
    SchemaError,
    StoreReadError,
    StoreWriteError,
)
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import VIEWS, WHY, key, put

ROOT = Path(__file__).parents[4]


def test_published_artifact_is_read_back(store):
    ref = put(store)
    assert store.scan(ref).collect().equals(VIEWS)
    manifest = store.check(ref)
    assert (manifest.rows, manifest.provenance.config) == (2, {"seed": 1})
    assert store.refs("views") == [ArtifactRef(kind="views", key=ref.key)]


def test_store_path_may_contain_glob_characters(tmp_path):
    store = Store(str(tmp_path / "run[1]"))
    ref = put(store)
    assert [each.path for each in store.refs()] == [ref.path]
    assert store.scan(ref).collect().equals(VIEWS)


def test_missing_artifact_error_suggests_running_its_stage(store):
    with pytest.raises(ArtifactMissingError, match="Run the stage that makes it"):
        store.scan(ViewsRef(key=key(9)))


def test_failed_stage_publishes_nothing(store):
    def half_way() -> None:
        with store.draft(ViewsRef(key=key(1)), WHY) as draft:
            draft.write(VIEWS)
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        half_way()
    assert store.refs() == []
    assert list((store.local / ".staging").iterdir()) == []


def test_folder_without_a_manifest_is_ignored_and_replaced(store):
    ref = put(store)
    (store.local / ref.path / MANIFEST).unlink()
    assert store.refs() == []
    assert "contains no views/" in store.defect(ref)
    put(store)
    assert store.defect(ref) is None


@pytest.mark.parametrize("position", [0, 100, -1])
def test_flipped_byte_raises_corrupt_artifact_error(store, position):
    ref = put(store)
    victim = next((store.local / ref.path).glob("*.parquet"))
    content = bytearray(victim.read_bytes())
    content[position] ^= 1
    victim.write_bytes(content)
    with pytest.raises(CorruptArtifactError, match="from the manifest"):
        store.scan(ref)


def test_manifest_of_a_newer_format_is_not_overwritten(store):
    ref = put(store)
    path = store.local / ref.path / MANIFEST
    path.write_text(path.read_text().replace('"format": 3', '"format": 4'))
    with pytest.raises(NewerFormatError, match=r"format 4, this version reads 3\. Upgrade"):
        store.manifest(ref)
    with pytest.raises(NewerFormatError):
        put(store)
    assert '"format": 4' in path.read_text()


def test_manifest_of_an_older_format_is_refused_and_its_artifact_made_again(store):
    ref = put(store)
    path = store.local / ref.path / MANIFEST
    path.write_text(path.read_text().replace('"format": 3', '"format": 2'))
    assert "format 2, this version reads 3" in store.defect(ref)
    put(store)
    assert store.defect(ref) is None


def test_writing_wrong_columns_raises_schema_error(store):
    with pytest.raises(SchemaError, match="sentence_id UInt64, method String, text String"):
        put(store, frame=VIEWS.rename({"text": "sentence"}))


def test_reading_wrong_columns_raises_schema_error(store, monkeypatch):
    ref = put(store)
    monkeypatch.setitem(drafts.check_schema.__globals__["TABLES"], "views", pl.Schema({"id": pl.UInt64}))
    with pytest.raises(SchemaError, match="expected id UInt64"):
        store.scan(ref)


def test_second_publisher_of_a_key_discards_its_copy(store):
    ref = put(store)
    before = store.manifest(ref).created_at
    put(store)
    assert store.manifest(ref).created_at == before


def test_store_path_with_a_file_raises_store_read_error(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(StoreReadError, match=r"file is a file, expected a folder. Choose another folder"):
            Store(path)


def test_full_disk_on_publish_preserves_existing_artifacts(store, monkeypatch):
    kept = put(store, 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreWriteError, match=r"the disk is full\. Free space"):
        put(store, 2)
    monkeypatch.undo()
    assert store.refs() == [ArtifactRef(kind="views", key=kept.key)]
    assert store.defect(kept) is None


def test_full_disk_during_polars_write_raises_store_write_error(store):
    def onto_full_device() -> None:
        with store.draft(ViewsRef(key=key(2)), WHY) as draft:
            (draft.folder / "views-00000.parquet").symlink_to("/dev/full")
            draft.write(VIEWS)

    with pytest.raises(StoreWriteError, match=r"the disk is full\. Free space"):
        onto_full_device()
    assert store.refs() == []


def _die_while_publishing(url: str) -> None:
    store = Store(url)
    with store.draft(ViewsRef(key=key(1)), WHY) as draft:
        draft.write(VIEWS)
        os.kill(os.getpid(), signal.SIGKILL)


def test_killed_publisher_leaves_no_partial_artifact(store):
    process = multiprocessing.get_context("spawn").Process(target=_die_while_publishing, args=(store.url,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert store.refs() == []
    assert leftovers(store, timedelta(0), datetime.now(UTC)) == []  # the process may still be running
    for path in (store.local / ".staging").rglob("*"):
        os.utime(path, (0, 0))
    assert len(leftovers(store, timedelta(0), datetime.now(UTC))) == 1
    put(store)
    assert store.scan(ViewsRef(key=key(1))).collect().height == 2


def _publish_many(url: str) -> None:
    for number in range(20):
        put(Store(url), number)


def test_two_processes_publish_the_same_keys_without_damage(store):
    context = multiprocessing.get_context("spawn")
    runs = [context.Process(target=_publish_many, args=(store.url,)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0]
    assert [store.defect(ref) for ref in store.refs()] == [None] * 20


def test_draft_deleted_before_publication_raises_store_write_error(store):
    def lose_the_draft() -> None:
        with store.draft(ViewsRef(key=key(1)), WHY) as draft:
            draft.write(VIEWS)
            draft.seal = lambda: shutil.rmtree(draft.folder)

    with pytest.raises(StoreWriteError, match="was deleted while views/"):
        lose_the_draft()


def test_export_to_folder_and_zip(store, tmp_path):
    ref = put(store)
    folder = store.export(ref, tmp_path / "out")
    assert pl.read_parquet(folder / "views-00000.parquet").equals(VIEWS)
    assert (folder / MANIFEST).exists()
    archive = store.export(ref, tmp_path / "out.zip")
    assert sorted(zipfile.ZipFile(archive).namelist()) == [MANIFEST, "views-00000.parquet"]
    with pytest.raises(StoreWriteError, match="already exists"):
        store.export(ref, folder)


def test_manifest_is_utf_8_in_any_locale(store):
    program = (
        "import sys; from bsl.storage.artifacts.store import Store; from bsl.storage.artifacts.refs import ViewsRef; "
        "from tests.hostile import VIEWS, WHY, key\n"
        "with Store(sys.argv[1]).draft(ViewsRef(key=key(1)), WHY) as draft:\n"
        "    draft.note({'direction': 'en \\u2192 de'}); draft.write(VIEWS)\n"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", program, store.url], env=plain, cwd=ROOT, check=True)
    assert store.manifest(ViewsRef(key=key(1))).figures == {"direction": "en \u2192 de"}


def test_atomic_write_deletes_old_temporary_folders(tmp_path):
    old, young = tmp_path / ".making-old", tmp_path / ".making-young"
    for folder in (old, young):
        (folder / "name").mkdir(parents=True)
    for path in (old / "name", old):
        os.utime(path, (0, 0))
    with atomic_write(tmp_path / "made") as path:
        path.mkdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "made"]
