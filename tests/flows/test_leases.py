"""`bsl artifacts gc` keeps artifacts that a running process uses, and deletes them afterwards."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from bsl.flows.cli.main import main
from bsl.storage.artifacts.garbage_collection import collect, collectable, leftovers
from bsl.storage.artifacts.leases import EXPIRES, store_time
from bsl.storage.artifacts.store import Store
from tests.s3_server import s3_served
from tests.servers import ROOT


@pytest.fixture(params=["folder", "s3"])
def url(request, tmp_path):
    if request.param == "folder":
        yield str(tmp_path / "store")
        return
    from moto.server import DomainDispatcherApplication, create_backend_app

    with s3_served(DomainDispatcherApplication(create_backend_app), "bucket"):
        yield "s3://bucket/store"


@pytest.fixture(scope="module")
def flows(environment):
    """Start the process of use_artifacts.py, which describes what it reads and prints."""
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "flows" / "use_artifacts.py")],
        cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)}, text=True, bufsize=1,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        yield process
        process.stdin.close()


def start(flows, url, count=0):
    of_s3 = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    print(json.dumps([url, count, of_s3]), file=flows.stdin)


def heard(flows):
    """Return the words of the next line."""
    return flows.stdout.readline().split()


def is_quiet(flows):
    return not select.select([flows.stdout], [], [], 0)[0]


def collect_everything(url):
    """Delete with no minimum age; return the artifacts that are left."""
    assert main([*DELETE, url]) == 0
    return {ref.path for ref in Store(url).refs()}


AT_OTHER_TIMES = """
import datetime, sys, time
at = time.time
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Shifted
from bsl.flows.cli.main import main
for hours in (-2, 2):
    time.time = lambda: at() + 3600 * hours
    assert main(sys.argv[1:]) == 0
"""
DELETE = ["artifacts", "gc", "--older-than", "0h", "--delete", "--store"]


def test_gc_deletes_artifacts_only_after_their_process_ends(flows, url):
    """Also on a machine whose clock is two hours behind or ahead; S3 has one of its own."""
    start(flows, url)
    _, corpus = heard(flows)
    assert corpus.startswith("corpus/")
    assert collect_everything(url) == {corpus}
    if not url.startswith("s3:"):
        subprocess.run([sys.executable, "-c", AT_OTHER_TIMES, *DELETE, url], cwd=ROOT, check=True)
        assert {ref.path for ref in Store(url).refs()} == {corpus}
        assert len([*Path(url, ".leases").glob("*.json")]) == 1
    print(file=flows.stdin)
    assert heard(flows) == ["ended", "0"]
    if url.startswith("s3:"):
        time.sleep(1)  # S3's times are whole seconds, and what was used in this one stays
    assert collect_everything(url) == set()


def test_lease_of_killed_process_protects_artifacts_until_it_expires(flows, tmp_path):
    url = str(tmp_path)
    start(flows, url)
    process, corpus = heard(flows)
    os.kill(int(process), signal.SIGKILL)
    assert heard(flows) == ["ended", "-9"]
    assert collect_everything(url) == {corpus}
    (lease,) = (tmp_path / ".leases").glob("*.json")
    long_ago = time.time() - EXPIRES.total_seconds() - 1
    os.utime(lease, (long_ago, long_ago))
    assert collect_everything(url) == set()
    assert not lease.exists()


def test_gc_without_a_minimum_age_beside_a_run_of_short_stages_deletes_nothing_that_it_needs(flows, tmp_path):
    """Every artifact is younger than the run, before and after the run's lease names it."""
    store = Store(str(tmp_path))
    start(flows, store.url, 6)
    rounds = 0
    while is_quiet(flows) and not any(tmp_path.iterdir()):
        time.sleep(0.01)
    while is_quiet(flows):
        now = store_time(store)
        listed = collectable(store, timedelta(0), now)
        collect(store, listed, leftovers(store, timedelta(0), now), now)
        rounds += 1
    _, word = heard(flows)
    pairs = [ref.kind for ref in store.refs()].count("pairs")
    print(file=flows.stdin)
    assert (word, heard(flows), pairs) == ("done", ["ended", "0"], 11)
    assert rounds > 10
    assert collect_everything(store.url) == set()
