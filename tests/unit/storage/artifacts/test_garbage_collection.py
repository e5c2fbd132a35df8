"""Garbage collection deletes old artifacts whole, except inputs of recent reports, evaluations and runs."""

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from bsl.storage.artifacts.garbage_collection import collect, collectable, leftovers
from bsl.storage.artifacts.manifest import InputEntry
from bsl.storage.artifacts.refs import ArtifactRef, ReportRef
from tests.hostile import WHY, key, made_long_ago, put


def test_garbage_collection_preserves_inputs_of_recent_reports(store):
    old, needed = put(store, 1), put(store, 2)
    made = InputEntry(kind="views", key=needed.key, digest=store.manifest(needed).digest)
    with store.draft(ReportRef(key=key(3)), WHY.model_copy(update={"inputs": {"views": made}})) as draft:
        (draft.folder / "report.md").write_text("# Report")
    everything = collectable(store, timedelta(days=-1), datetime.now(UTC))
    assert {manifest.kind for manifest in everything} == {"views", "report"}
    none_yet = collectable(store, timedelta(days=1), datetime.now(UTC))
    assert none_yet == []
    report_is_young = collectable(store, timedelta(seconds=0.5), store.manifest(ReportRef(key=key(3))).created_at)
    assert {manifest.key for manifest in report_is_young} <= {old.key}
    collect(store, [store.manifest(old)])
    assert [ref.key for ref in store.refs("views")] == [needed.key]


def test_garbage_collection_preserves_inputs_of_evaluations_and_runs(store):
    put(store, 1)
    evaluated, cached = put(store, 2), put(store, 3)
    made = InputEntry(kind="views", key=evaluated.key, digest=store.manifest(evaluated).digest)
    made_long_ago(store)
    with store.draft(
        ArtifactRef(kind="evaluation", key=key(4)), WHY.model_copy(update={"inputs": {"views": made}})
    ) as draft:
        (draft.folder / "evaluation.md").write_text("# Evaluation")
    store.remember(cached)
    gone = collectable(store, timedelta(days=1), datetime.now(UTC))
    assert [manifest.key for manifest in gone] == [key(1)]


def test_garbage_collection_skips_artifacts_used_since_the_listing(store):
    used, idle = put(store, 1), put(store, 2)
    made_long_ago(store)
    now = datetime.now(UTC)
    listed = collectable(store, timedelta(days=1), now)
    assert len(listed) == 2
    store.used(used)
    gone = collect(store, listed, used_before=now - timedelta(days=1))
    assert [manifest.key for manifest in gone] == [idle.key]
    assert store.refs() == [ArtifactRef(kind="views", key=used.key)]


def test_concurrent_garbage_collections_delete_every_listed_artifact(store):
    refs = [put(store, 1), put(store, 2)]
    listed = [store.manifest(ref) for ref in refs]
    store.remove(refs[0])
    assert collect(store, listed) == listed
    assert store.refs() == []
    assert list((store.local / ".trash").iterdir()) == []


def test_leftovers_include_the_trash_of_a_killed_garbage_collection(store, monkeypatch):
    ref = put(store, 1)
    monkeypatch.setattr(shutil, "rmtree", ended)
    with pytest.raises(KeyboardInterrupt):
        store.remove(ref)
    monkeypatch.undo()
    assert store.refs() == []
    (left,) = (store.local / ".trash").iterdir()
    for path in (*left.rglob("*"), left):
        os.utime(path, (0, 0))
    assert leftovers(store, timedelta(0), datetime.now(UTC)) == [left]


def ended(*_arguments: object, **_options: object) -> None:
    raise KeyboardInterrupt
