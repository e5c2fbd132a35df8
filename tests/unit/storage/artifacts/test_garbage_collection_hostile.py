"""Garbage collection in a tampered store: artifacts that cannot be judged are not deleted."""

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from bsl.storage.artifacts.garbage_collection import collect, collectable, leftovers, readable_manifests
from bsl.storage.artifacts.manifest import InputEntry
from bsl.storage.artifacts.refs import ArtifactRef, ReportRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import CorruptArtifactError
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import WHY, a_pipe, folder_of, key, put, rewrite


def report_on(store: Store, ref: ViewsRef, number: int = 3) -> ReportRef:
    made = InputEntry(kind="views", key=ref.key, digest=store.manifest(ref).digest)
    report = ReportRef(key=key(number))
    with store.draft(report, WHY.model_copy(update={"inputs": {"views": made}})) as draft:
        (draft.folder / "report.md").write_text("# Report")
    return report


def gone(store: Store) -> list[str]:
    """Return the paths that would be collected in the year 2100."""
    return [manifest.ref.path for manifest in collectable(store, timedelta(days=30), datetime(2100, 1, 1, tzinfo=UTC))]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store, ref: rewrite(store, ref, format=4),
        lambda store, ref: rewrite(store, ref, created_at="2026-01-01T00:00:00"),
        lambda store, ref: rewrite(store, ref, key=key(1)),
        lambda store, ref: a_pipe(folder_of(store, ref) / MANIFEST),
        lambda store, ref: (folder_of(store, ref) / MANIFEST).write_text("{"),
    ],
    ids=["newer", "naive", "renamed", "pipe", "torn"],
)
def test_garbage_collection_deletes_nothing_with_an_unreadable_manifest(store, spoil):
    needed = put(store, 1)
    report = report_on(store, needed)
    assert sorted(gone(store)) == sorted([needed.path, report.path])
    spoil(store, report)
    with pytest.raises(CorruptArtifactError, match=r"1 manifests cannot be read, .* nothing is deleted"):
        gone(store)
    assert [manifest.ref for manifest in readable_manifests(store)] == [ArtifactRef(kind="views", key=needed.key)]


def test_manifest_copied_from_another_artifact_stops_garbage_collection(store):
    """A manifest that names another artifact deletes nothing, least of all the named artifact."""
    victim, liar = put(store, 1), put(store, 2)
    shutil.copy(folder_of(store, victim) / MANIFEST, folder_of(store, liar) / MANIFEST)
    with pytest.raises(CorruptArtifactError, match="manifest of views/000000000000, expected"):
        gone(store)
    assert store.defect(victim) is None


def test_garbage_collection_does_not_follow_symlinks_in_the_trash(store, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    (store.workplace / ".trash").mkdir(parents=True)
    (store.workplace / ".trash" / "link").symlink_to(tmp_path / "precious")
    os.utime(store.workplace / ".trash" / "link", (0, 0), follow_symlinks=False)
    collect(store, [], leftovers(store, timedelta(0), datetime.now(UTC)))
    assert (tmp_path / "precious" / "file").read_text() == "kept"
    assert list((store.workplace / ".trash").iterdir()) == []


def test_backward_clock_change_makes_no_artifact_collectable(store):
    """Artifacts made while the clock was ahead have a negative age, and remain until the clock catches up."""
    put(store, 1)
    with store.workspace() as folder:
        (folder / "part.parquet").write_bytes(b"x")
        back = datetime.fromtimestamp(0, UTC)
        assert leftovers(store, timedelta(0), back) == []
    assert collectable(store, timedelta(0), back) == []


def test_workspaces_are_not_leftovers_for_at_least_a_day(store):
    """Even with an age limit of zero: a machine may be in a wrong time zone, a stage may write nothing for hours."""
    with store.workspace():
        assert leftovers(store, timedelta(0), datetime.now(UTC) + timedelta(hours=23)) == []
        assert len(leftovers(store, timedelta(0), datetime.now(UTC) + timedelta(hours=25))) == 1
