"""A lease protects an artifact and its inputs for an hour after its last renewal."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from bsl.storage.artifacts.garbage_collection import collect, collectable
from bsl.storage.artifacts.leases import EXPIRES, begin_lease, leases, release, store_time, write_lease
from bsl.storage.artifacts.manifest import InputEntry
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import StoreReadError
from tests.hostile import WHY, made_long_ago, put


def leasing(store: Store, *refs) -> None:
    write_lease(store, "process", [ref.path for ref in refs])


def test_lease_protects_an_artifact_and_its_inputs_until_release(store):
    source, other = put(store, 1), put(store, 2)
    entry = InputEntry(kind="views", key=source.key, digest=store.manifest(source).digest)
    made = put(store, 3, WHY.model_copy(update={"inputs": {"views": entry}}))
    made_long_ago(store)
    leasing(store, made)
    now = datetime.now(UTC)
    assert [manifest.key for manifest in collectable(store, timedelta(0), now)] == [other.key]
    release(store, "process")
    assert len(collectable(store, timedelta(0), now)) == 3
    release(store, "process")  # a second release changes nothing


def test_lease_expires_after_its_lifetime(store):
    ref = put(store)
    leasing(store, ref)
    later = datetime.now(UTC) + EXPIRES + timedelta(seconds=5)
    assert leases(store, later) == (set(), None, [".leases/process.json"])
    assert leases(store, later - timedelta(minutes=1)) == ({ref.path}, None, [])


def test_artifacts_made_or_used_since_a_process_began_are_kept_until_its_lease_ends(store):
    old, used = put(store, 1), put(store, 2)
    made_long_ago(store)
    for ref in (old, used):
        os.utime(store.local / ref.path / "manifest.json", (0, 0))
    begin_lease(store, "process")
    store.used(used)
    made = put(store, 3)
    later = store_time(store) + timedelta(minutes=50)
    assert [manifest.key for manifest in collectable(store, timedelta(0), later)] == [old.key]
    assert [manifest.key for manifest in collect(store, [store.manifest(ref) for ref in (old, used, made)])] == [
        old.key
    ]
    expired = leases(store, later + EXPIRES)
    assert (expired.paths, expired.since) == (set(), None)
    assert expired.expired == [".leases/process.began", ".leases/process.json"]
    release(store, "process")
    assert len(collectable(store, timedelta(0), later)) == 2


def test_garbage_collection_skips_artifacts_leased_after_the_listing(store):
    ref = put(store)
    made_long_ago(store)
    listed = collectable(store, timedelta(0), datetime.now(UTC))
    leasing(store, ref)
    assert collect(store, listed) == []
    assert [left.path for left in store.refs()] == [ref.path]


def test_unreadable_lease_stops_garbage_collection(store):
    put(store)
    leasing(store, put(store))
    (path,) = (store.local / ".leases").iterdir()
    path.write_text("{")
    with pytest.raises(StoreReadError, match="not a lease"):
        collectable(store, timedelta(0), datetime.now(UTC))
