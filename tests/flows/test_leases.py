"""`bsl artifacts gc` keeps artifacts that a running process uses, and deletes them afterwards."""

import os
import signal
import subprocess
import sys
import time

import pytest
from prefect.settings import get_current_settings

from flows.cli.main import main
from storage.artifacts.leases import EXPIRES
from storage.artifacts.store import Store
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


def started(url: str) -> tuple[subprocess.Popen[str], str]:
    """Start a run that waits after its first stage; return it and the path of the stage's artifact."""
    environment = os.environ | get_current_settings().to_environment_variables(exclude_unset=True)
    run = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "flows" / "use_and_wait.py"), url],
        cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    return run, run.stdout.readline().strip()


def collect_everything(url: str) -> set[str]:
    """Delete with no minimum age; return the artifacts that are left."""
    assert main(["artifacts", "gc", "--older-than", "0h", "--delete", "--store", url]) == 0
    return {ref.path for ref in Store(url).refs()}


def test_gc_deletes_artifacts_only_after_their_process_ends(url):
    run, corpus = started(url)
    assert corpus.startswith("corpus/")
    assert collect_everything(url) == {corpus}
    pairs, _ = run.communicate("", timeout=120)
    assert run.returncode == 0
    assert pairs.startswith("pairs/")
    assert collect_everything(url) == set()


def test_lease_of_killed_process_protects_artifacts_until_it_expires(tmp_path):
    url = str(tmp_path)
    run, corpus = started(url)
    with run:
        run.send_signal(signal.SIGKILL)
    assert collect_everything(url) == {corpus}
    (lease,) = (tmp_path / ".leases").glob("*.json")
    long_ago = time.time() - EXPIRES.total_seconds() - 1
    os.utime(lease, (long_ago, long_ago))
    assert collect_everything(url) == set()
    assert not lease.exists()
