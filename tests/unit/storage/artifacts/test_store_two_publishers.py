"""Two concurrent publishers of one key on an object store leave one whole artifact."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from bsl.storage.artifacts.garbage_collection import collect, leftovers
from bsl.storage.artifacts.refs import ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import VIEWS, WHY, damage, key
from tests.s3_server import Moto, s3_served

REF = ViewsRef(key=key(1))
WRITES = 3  # two files and the manifest


@pytest.fixture(scope="module")
def s3():
    with s3_served(Moto(), "races") as address:
        yield address


@pytest.fixture(params=["memory", "s3"])
def store(request, tmp_path):
    place = "memory:/" if request.param == "memory" else request.getfixturevalue("s3")
    return Store(f"{place}/{tmp_path.name}", tmp_path / "cache")


def publish(store, words):
    with store.draft(REF, WHY) as draft:
        draft.write(VIEWS.with_columns(text=pl.lit(words)))
        (draft.folder / "log.txt").write_text(words)


def held(store, cache):
    reader = Store(store.url, cache)
    return {*reader.scan(REF).collect()["text"], (reader.fetch(REF) / "log.txt").read_text()}


def files(store):
    return {path.removeprefix(f"{store.root}/{REF.path}/") for path in store.fs.find(f"{store.root}/{REF.path}")}


def named(store):
    manifest = store.manifest(REF)
    return {MANIFEST, *map(manifest.where, manifest.files)}


@contextmanager
def before_write(store, number, act):
    """Run `act` just before the store's client writes for the `number`th time."""
    writes = iter(range(WRITES))

    def hooked(write):
        def wrapped(*args, **kwargs):
            if next(writes, None) == number:
                act()
            return write(*args, **kwargs)

        return wrapped

    with pytest.MonkeyPatch.context() as client:
        for name in ("put_file", "pipe_file"):
            client.setattr(store.fs, name, hooked(getattr(store.fs, name)))
        yield


@pytest.mark.parametrize("write", range(WRITES))
def test_interleaved_publishers_leave_a_single_whole_artifact(store, tmp_path, write):
    other, seen = Store(store.url, tmp_path / "other"), []

    def publish_and_read():
        publish(other, "B")
        seen.append(held(other, tmp_path / "at once"))

    with before_write(store, write, publish_and_read):
        publish(store, "A")
    assert seen == [{"B"}]
    assert damage(store, REF) is None
    late = write == WRITES - 1  # after A's last check: its manifest wins
    assert held(store, tmp_path / "later") == ({"A"} if late else {"B"})
    assert (files(store) == named(store)) is not late


def forgotten(store, now):
    return [left for left in leftovers(store, timedelta(0), now) if isinstance(left, str)]


def test_files_in_no_manifest_are_leftovers_after_a_month(store, tmp_path):
    def killed():
        raise KeyboardInterrupt

    with before_write(store, 1, killed), pytest.raises(KeyboardInterrupt):
        publish(store, "killed")
    assert len(files(store)) == 1
    soon, later = (datetime.now(UTC) + timedelta(days=days) for days in (29, 31))
    for held_by in (None, "A"):
        if held_by:
            publish(store, held_by)
        assert forgotten(store, soon) == []
        assert len(forgotten(store, later)) == 1
    collect(store, [], forgotten(store, later))
    assert files(store) == named(store)
    assert held(store, tmp_path / "later") == {"A"}
    store.fs.pipe_file(f"{store.root}/{REF.path}/{MANIFEST}", b"{}")
    store.fs.pipe_file(f"{store.root}/{REF.path}/{'0' * 32}/log.txt", b"")
    assert forgotten(store, later) == []  # the artifact's inputs are unknown


def test_damaged_artifact_is_republished_in_a_new_folder(store, tmp_path):
    publish(store, "A")
    first = store.manifest(REF)
    store.fs.pipe_file(f"{store.root}/{REF.path}/{first.where('log.txt')}", b"X")
    publish(store, "B")
    assert held(store, tmp_path / "later") == {"B"}
    assert store.manifest(REF).place != first.place


def test_remote_artifact_is_readable_as_local_copy_and_export(store, tmp_path):
    publish(store, "A")
    copy = Store(str(tmp_path / "copy"))
    store.fs.get(f"{store.root}/{REF.path}", str(tmp_path / "copy" / REF.path), recursive=True)
    assert held(copy, tmp_path / "later") == {"A"}
    assert [ref.path for ref in copy.refs()] == [REF.path]
    for source in (store, copy):
        made = tmp_path / "store" / REF.path
        source.export(REF, made)
        assert {path.name for path in made.iterdir()} == {MANIFEST, "log.txt", "views-00000.parquet"}
        again = Store(str(tmp_path / "store"))
        assert damage(again, REF) is None
        again.remove(REF)
