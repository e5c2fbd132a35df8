"""Every request to an object store fails in every way during every operation.

Each failure gives a clear error or the right result and no partial artifact, and the repeated operation succeeds. `-s`
prints the number of faults.
"""

import sys
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from s3fs import S3FileSystem

from bsl.storage.artifacts.garbage_collection import collectable, leftovers
from bsl.storage.artifacts.leases import leases, release, write_lease
from bsl.storage.artifacts.refs import ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import CorruptArtifactError, StorageError, StoreReadError
from tests.hostile import damage, key, put
from tests.s3_server import Moto, s3_served

REF = ViewsRef(key=key(0))
NOW = datetime(2999, 1, 1, tzinfo=UTC)
FAULTS = ("403", "404", "500", "503", "500 though done", "closed", "cut", "other bytes")


def read(store):
    return store.scan(REF).collect().rows(), sorted(path.name for path in store.fetch(REF).iterdir())


def lend(store):
    write_lease(store, "process", [ref.path for ref in store.refs()])
    now = datetime.now(UTC)
    found = leases(store, now)
    release(store, "process")
    return found


def use(store):
    store.used(REF)
    return store.was_published(REF), store.last_used(store.manifest(REF)) is not None


def remove(store):
    store.remove(REF)
    return store.refs()


ACTS = {
    "publish": lambda store: store.manifest(put(store, 1)).digest,
    "read": read,
    "whole": lambda store: (store.defect(REF), damage(store, REF)),
    "list": Store.refs,
    "collect": lambda store: ([found.ref for found in collectable(store, timedelta(0), NOW)],
                              leftovers(store, timedelta(0), datetime.now(UTC))),
    "lend": lend,
    "use": use,
    "remove": remove,
}  # fmt: skip


@pytest.fixture(scope="module")
def s3():
    broken = Moto()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_MAX_ATTEMPTS", "1")  # no retries, so that each fault is final
        patch.setattr(S3FileSystem, "retries", 1)
        with s3_served(broken, "faults") as address:
            yield broken, address


@pytest.mark.parametrize("fault", ["403", "503"])
def test_object_store_that_denies_every_request_raises_store_read_error(s3, tmp_path, fault):
    """Otherwise a run would make its artifacts again, and collection would delete artifacts in use."""
    broken, address = s3
    store = Store(f"{address}/{tmp_path.name}", tmp_path / "cache")
    made = store.manifest(put(store, 0))
    write_lease(store, "process", [REF.path])
    broken.fail(None, fault)
    for act in (
        store.refs,
        lambda: store.manifest(REF),
        lambda: store.defect(REF),
        lambda: store.last_used(made),
        lambda: put(store),
        lambda: leases(store, NOW),
    ):
        with pytest.raises(StoreReadError, match="cannot read"):
            act()
    broken.fail(-1, "")


@pytest.mark.parametrize(
    ("url", "cause"), [("foo://x", "Protocol not known: foo"), ("ftp://127.0.0.1:9/x", "Connection refused")]
)
def test_address_that_no_client_opens_is_named_with_the_cause(url, cause):
    with pytest.raises(StoreReadError, match=rf"cannot read {url}: .*{cause}\. Check"):
        Store(url)


def test_file_deleted_during_fetch_raises_corrupt_artifact_error(s3, tmp_path):
    broken, address = s3
    store = Store(f"{address}/{tmp_path.name}", tmp_path / "cache")
    put(store, 0)
    store.check(REF)
    requests = broken.seen
    store.check(REF)
    broken.fail(broken.seen - requests, "404")
    with pytest.raises(CorruptArtifactError, match=r"deleted since it was checked\."):
        store.fetch(REF)


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTS)
def test_store_operations_succeed_when_repeated_after_an_s3_fault(s3, tmp_path, capsys, name):
    broken, address = s3
    counts: Counter[str] = Counter()

    def store(number):
        place = f"{address}/{tmp_path.name}-{number}"
        put(Store(place, tmp_path / "first"), 0)
        return Store(place, tmp_path / number)

    clean = store("clean")
    broken.fail(-1, "")
    expected, requests = ACTS[name](clean), broken.seen
    for fault in FAULTS:
        for number in range(requests):
            own = store(f"{fault}-{number}".replace(" ", "-"))
            broken.fail(number, fault)
            try:
                found = ACTS[name](own)
                counts["the result"] += 1
                assert found == expected or fault == "404", (fault, number)
            except StorageError:
                counts["an error"] += 1
            counts["faults"] += broken.met
            broken.fail(-1, "")
            assert [damage(own, ref) for ref in own.refs()] == [None] * len(own.refs()), (fault, number)
            if name != "remove" or own.refs():
                assert ACTS[name](own) == expected, (fault, number)
    with capsys.disabled():
        sys.stdout.write(f"\n  {name}: {requests} requests, {dict(counts)}\n")
