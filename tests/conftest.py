"""Fixtures that several rooms share."""

import os

import pytest
from hypothesis import settings

from flows.cli.terminal.log_lines import QUIET

# One thread for each of pytest's processes, and for those that tests start; read when torch is imported.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["GOMP_SPINCOUNT"] = "2000"  # as tasks sets it, which tests may import after torch

settings.register_profile("house", deadline=None)  # torch's first call alone takes longer than the default 200 ms
settings.load_profile("house")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: a quarter of the time goes to waiting for servers to start and answer."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch):
    """A test says itself which store, mirror and device it uses; real-data tests read the mirror at import."""
    for name in [name for name in os.environ if name.startswith("BSL_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_quiet_of_another_test(monkeypatch):
    """A verb that runs in this process quiets Prefect through the environment, which processes of later tests have."""
    for name in QUIET:
        monkeypatch.setenv(name, "")  # so that what the test sets goes with it
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def shallow(tmp_path_factory):
    """The folder of the embedded BERT's first layer, which learns from real text in a third of the whole's time."""
    from tests.tiny_encoder import write_shallow  # transformers is slow to import, and most tests have no use for it

    return write_shallow(tmp_path_factory.mktemp("encoder") / "shallow")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub on loopback, empty, whose clients keep what they fetch in this test's folder and wait for nobody."""
    from tests.hub.client import use  # the Hub's client is slow to import, and most tests have no use for it
    from tests.hub.server import StandInHub, served

    stand_in = StandInHub()
    use(stand_in, tmp_path / "hub-cache", monkeypatch)
    yield from served(stand_in)
