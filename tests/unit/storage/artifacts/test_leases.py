"""A lease protects artifacts for an hour after its last renewal; what it protects is in test_garbage_collection.py."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from bsl.storage.artifacts.garbage_collection import collect, collectable
from bsl.storage.artifacts.leases import EXPIRES, begin_lease, leases, release, store_time, write_lease
from bsl.storage.errors import StoreReadError
from tests.hostile import made_long_ago, put


def test_lease_ends_when_it_is_released_or_after_an_hour(store):
    ref = put(store)
    write_lease(store, "process", [ref.path])
    later = datetime.now(UTC) + EXPIRES + timedelta(seconds=5)
    assert leases(store, later) == (set(), None, [".leases/process.json"])
    assert leases(store, later - timedelta(minutes=1)) == ({ref.path}, None, [])
    for _ in range(2):  # a second release changes nothing
        release(store, "process")
        assert leases(store, datetime.now(UTC)) == (set(), None, [])


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
    deleted = collect(store, [store.manifest(ref) for ref in (old, used, made)])
    assert [manifest.key for manifest in deleted] == [old.key]
    assert leases(store, later + EXPIRES) == (set(), None, [".leases/process.began", ".leases/process.json"])
    release(store, "process")
    assert len(collectable(store, timedelta(0), later)) == 2


def test_unreadable_lease_stops_garbage_collection(store):
    put(store)
    write_lease(store, "process", [])
    (store.local / ".leases" / "process.json").write_text("{")
    with pytest.raises(StoreReadError, match="not a lease"):
        collectable(store, timedelta(0), datetime.now(UTC))
