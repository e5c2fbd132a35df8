"""Fixtures shared by several test packages."""

import logging
import os
import random
import sys
from unittest.mock import patch

import pytest
from hypothesis import settings

from bsl.flows.cli.terminal.log_lines import QUIET

# One thread for each pytest process and its subprocesses; read when torch is imported.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["GOMP_SPINCOUNT"] = "2000"  # the value that the command sets
os.environ.pop("PREFECT_API_URL", None)  # tests start servers of their own

settings.register_profile("house", deadline=None)  # the first call of torch takes longer than the default 200 ms
settings.load_profile("house")
TOGETHER = {  # file → file in whose process it runs
    "tests/unit/tasks/reporting/test_publish_pages.py": "tests/golden/test_stages.py",  # they share the tiny runs
    # Their deployments and work pools have the same names on the one Prefect server.
    "tests/flows/test_recipes_from_the_hub.py": "tests/flows/test_work_pool.py",
    "tests/flows/test_wheel.py": "tests/flows/test_work_pool.py",
}


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: a quarter of the time is waiting for servers to start and respond."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile`, also run some files in one process."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class SharedRuns(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return TOGETHER.get(file, file)

    return SharedRuns(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Every test and its fixtures draw the same random numbers, alone or after others."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def _own_environment():
    """A test inherits no settings of this machine, nor variables that another test set; real data is found at import.

    Commands in this process set variables of Prefect, and `monkeypatch.delenv` restores no variable that was absent.
    """
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("BSL_") or name in QUIET]:
            del os.environ[name]
        yield


@pytest.fixture(autouse=True)
def _logging_is_unlocked():
    """An interruption inside `logging` can leave its lock locked, and any thread that logs would wait forever."""
    yield
    locked = logging._lock._is_owned()
    if locked:
        logging._lock.release()
    assert not locked, "this test left the lock of logging locked in the main thread"


@pytest.fixture(scope="session")
def shallow(tmp_path_factory):
    """The embedded BERT's first layer, which trains on real text in a third of the full model's time."""
    from tests.tiny_encoder import write_shallow  # transformers is slow to import, and most tests do not need it

    return write_shallow(tmp_path_factory.mktemp("encoder") / "shallow")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """Return a folder for the tiny runs, whose store all tests of such runs in this process share."""
    from tests.golden.tiny_runs import prepare  # torch is slow to import, and most tests do not need it

    return prepare(tmp_path_factory.mktemp("tiny-runs"))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """An empty Hub on loopback; its clients cache in this test's folder and wait only briefly between retries."""
    from tests.hub.client import use  # the Hub's client is slow to import, and most tests do not need it
    from tests.hub.server import StandInHub, served

    stand_in = StandInHub()
    use(stand_in, tmp_path / "hub-cache", monkeypatch)
    yield from served(stand_in)
