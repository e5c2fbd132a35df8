"""Garbage collection deletes old artifacts whole, except those that are used, needed, or cannot be judged."""

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from bsl.storage.artifacts.garbage_collection import collect, collectable, leftovers, readable_manifests
from bsl.storage.artifacts.leases import write_lease
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.errors import CorruptArtifactError
from tests.corpora import publish
from tests.hostile import key, made_from, made_long_ago, put, rewrite

DAY = timedelta(days=1)


def report_on(store, ref, kind="report"):
    return publish(store, ArtifactRef(kind=kind, key=key(9)), inputs={"views": ref}, page="# Report")


def paths(store, age, now=None):
    return {manifest.ref.path for manifest in collectable(store, age, now or datetime.now(UTC))}


def lease(store, ref):
    write_lease(store, "process", [ref.path])


PROTECTED = {
    "input of a recent report": report_on,
    "input of a recent evaluation": lambda store, ref: report_on(store, ref, "evaluation"),
    "used by a recent run": lambda store, ref: store.used(ref),
    "leased": lease,
    "input of a leased artifact": lambda store, ref: lease(store, put(store, 3, made_from(store, ref))),
}


@pytest.mark.parametrize("protect", PROTECTED.values(), ids=PROTECTED)
def test_used_or_needed_artifact_is_not_collectable(store, protect):
    old, needed = put(store, 1), put(store, 2)
    made_long_ago(store)
    protect(store, needed)
    assert paths(store, DAY) == {old.path}


@pytest.mark.parametrize("protect", [PROTECTED["used by a recent run"], PROTECTED["leased"]], ids=["used", "leased"])
def test_artifact_protected_since_the_listing_is_not_deleted(store, protect):
    ref, idle = put(store, 1), put(store, 2)
    made_long_ago(store)
    now = datetime.now(UTC)
    listed = collectable(store, DAY, now)
    assert len(listed) == 2
    protect(store, ref)
    assert [manifest.key for manifest in collect(store, listed, used_before=now - DAY)] == [idle.key]
    assert store.refs() == [ArtifactRef(kind="views", key=ref.key)]


def test_age_decides_and_protects_no_input_of_an_old_report(store):
    ref = put(store, 1)
    report = report_on(store, ref)
    assert paths(store, -DAY) == {ref.path, report.path}
    assert paths(store, DAY) == set()
    assert paths(store, timedelta(0), datetime.fromtimestamp(0, UTC)) == set()  # after a backward change of the clock


def test_concurrent_garbage_collections_delete_every_listed_artifact(store):
    refs = [put(store, 1), put(store, 2)]
    listed = [store.manifest(ref) for ref in refs]
    store.remove(refs[0])
    assert collect(store, listed) == listed
    assert store.refs() == []
    assert list((store.local / ".trash").iterdir()) == []


def test_killed_garbage_collection_leaves_trash_and_no_half_artifact(store, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    ref = put(store, 1)
    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        store.remove(ref)
    monkeypatch.undo()
    assert store.refs() == []
    (left,) = (store.local / ".trash").iterdir()
    for path in (*left.rglob("*"), left):
        os.utime(path, (0, 0))
    assert leftovers(store, timedelta(0), datetime.now(UTC)) == [left]


@pytest.mark.parametrize("fields", [{"format": 4}, {"created_at": "2026-01-01T00:00:00"}, {"key": key(1)}], ids=str)
def test_unreadable_manifest_stops_garbage_collection(store, fields):
    """Its inputs are unknown; one that names another artifact deletes least of all the named one."""
    needed = put(store, 1)
    rewrite(store, report_on(store, needed), **fields)
    with pytest.raises(CorruptArtifactError, match=r"1 manifests cannot be read, .* nothing is deleted"):
        paths(store, timedelta(days=30), datetime(2100, 1, 1, tzinfo=UTC))
    assert [manifest.ref for manifest in readable_manifests(store)] == [ArtifactRef(kind="views", key=needed.key)]


def test_garbage_collection_does_not_follow_symlinks_in_the_trash(store, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    (store.workplace / ".trash").mkdir(parents=True)
    (store.workplace / ".trash" / "link").symlink_to(tmp_path / "precious")
    os.utime(store.workplace / ".trash" / "link", (0, 0), follow_symlinks=False)
    collect(store, [], leftovers(store, timedelta(0), datetime.now(UTC)))
    assert (tmp_path / "precious" / "file").read_text() == "kept"
    assert list((store.workplace / ".trash").iterdir()) == []


def test_workspaces_are_leftovers_only_after_a_day(store):
    """Even with an age limit of zero: a machine may be in a wrong time zone, a stage may write nothing for hours."""
    with store.workspace() as folder:
        (folder / "part.parquet").write_bytes(b"x")
        now = datetime.now(UTC)
        hours = {hour: leftovers(store, timedelta(0), now + timedelta(hours=hour)) for hour in (-10_000, 23, 25)}
    assert hours == {-10_000: [], 23: [], 25: [folder]}
