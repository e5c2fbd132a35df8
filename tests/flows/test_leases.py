"""`bsl artifacts gc` keeps artifacts that a running process uses, and deletes them afterwards."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

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


def started(url, count=0):
    environment = os.environ | get_current_settings().to_environment_variables(exclude_unset=True)
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "flows" / "use_artifacts.py"), url, str(count)],
        cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def collect_everything(url):
    """Delete with no minimum age; return the artifacts that are left."""
    assert main(["artifacts", "gc", "--older-than", "0h", "--delete", "--store", url]) == 0
    return {ref.path for ref in Store(url).refs()}


AHEAD = """
import datetime, sys, time
skew, at = float(sys.argv.pop(1)), time.time
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(at() + skew, tz)
datetime.datetime, time.time = Shifted, lambda: at() + skew
from bsl.flows.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_gc_deletes_artifacts_only_after_their_process_ends(url):
    """Also on a machine whose clock is two hours behind or ahead; S3 has one of its own."""
    run = started(url)
    corpus = run.stdout.readline().strip()
    assert corpus.startswith("corpus/")
    assert collect_everything(url) == {corpus}
    for hours in () if url.startswith("s3:") else (-2, 2):
        command = [sys.executable, "-c", AHEAD, str(3600 * hours), "artifacts", "gc", "--older-than", "0h", "--delete"]
        subprocess.run([*command, "--store", url], cwd=ROOT, check=True)
        assert {ref.path for ref in Store(url).refs()} == {corpus}
        assert len([*Path(url, ".leases").glob("*.json")]) == 1
    _, messages = run.communicate("\n", timeout=120)
    assert run.returncode == 0, messages
    assert collect_everything(url) == set()


def test_lease_of_killed_process_protects_artifacts_until_it_expires(tmp_path):
    url = str(tmp_path)
    run = started(url)
    corpus = run.stdout.readline().strip()
    run.kill()
    run.communicate()
    assert collect_everything(url) == {corpus}
    (lease,) = (tmp_path / ".leases").glob("*.json")
    long_ago = time.time() - EXPIRES.total_seconds() - 1
    os.utime(lease, (long_ago, long_ago))
    assert collect_everything(url) == set()
    assert not lease.exists()


def test_gc_without_a_minimum_age_beside_a_run_of_short_stages_deletes_nothing_that_it_needs(tmp_path):
    """Every artifact is younger than the run, before and after the run's lease names it."""
    store = Store(str(tmp_path))
    run, rounds = started(store.url, 6), 0
    os.set_blocking(run.stdout.fileno(), False)
    while run.poll() is None and not any(tmp_path.iterdir()):
        time.sleep(0.01)
    while run.poll() is None and not run.stdout.readline():
        now = store_time(store)
        listed = collectable(store, timedelta(0), now)
        collect(store, listed, leftovers(store, timedelta(0), now), now)
        rounds += 1
    pairs = [ref.kind for ref in store.refs()].count("pairs")
    _, messages = run.communicate("\n", timeout=120)
    assert (run.returncode, pairs) == (0, 11), messages
    assert rounds > 10
    assert collect_everything(store.url) == set()
