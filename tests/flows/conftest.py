"""Fixtures of all flow tests: one Prefect server, and small settings of recipe `tiny`."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib.metadata import version
from pathlib import Path

import polars as pl
import prefect.context
import pytest
from prefect.context import get_settings_context
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from bsl.flows.recipes.shared import ALONE
from bsl.storage.artifacts.manifest import Manifest
from bsl.storage.artifacts.store import Store
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.rendering import charts
from bsl.tasks.stage.run_context import RunContext
from tests.servers import SERVER, clients_of, detached, free_port, shared, wait_until_healthy
from tests.tiny_encoder import write_tiny
from tests.toy_sets import allow_any_rows

SMALL = {
    "ingest": {"corpus": {"limit": 96}},
    "training": {"batch_size": 16, "epochs": 1, "max_steps": 6, "eval_every": 3, "collapse": None},
    "evaluation": {"precision": "fp32", "bootstrap": {"resamples": 100}},
}

ALONE_SMALL = {
    **SMALL,
    "augment": {"translations": []},
    "pairs": ALONE.model_dump(),
    "training": {**SMALL["training"], "max_steps": 3},
    "evaluation": {**SMALL["evaluation"], "sets": ["embedded:stsb/test"]},
}


@pytest.fixture(scope="session")
def migrated(pytestconfig) -> Path:
    """Return where the first session with this version of Prefect leaves a database that Prefect has migrated."""
    return Path(pytestconfig.cache.mkdir(f"prefect-{version('prefect')}")) / "migrated.db"


@pytest.fixture(scope="session", autouse=True)
def prefect_server(migrated, tmp_path_factory, pytestconfig):
    """Serve all processes of a session, on a copy of the migrated database: migrations take longer than all else."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(pytestconfig, "workerinput") else base) / "prefect"
    folder.mkdir(exist_ok=True)

    def start() -> tuple[int, int]:
        port, database = free_port(), folder / "prefect.db"
        clients = clients_of(port, folder)
        light = {
            "PREFECT__SERVER_EPHEMERAL": "1",  # this and the next as in prefect_test_harness
            "PREFECT_UI_ENABLED": "0",
            "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "0",  # no test has automations, or reads events
            "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "0",
        }
        if migrated.exists():
            shutil.copy(migrated, database)
        command = [*SERVER, "--port", str(port)]
        process = detached(command, {**os.environ, **clients, **light}, folder / "server.log")
        wait_until_healthy(clients["PREFECT_API_URL"])
        if not migrated.exists():
            whole = migrated.with_suffix(f".{process}")  # another session may make it too
            with closing(sqlite3.connect(database)) as own, closing(sqlite3.connect(whole)) as new:
                own.backup(new)
            whole.replace(migrated)
        return process, port

    with ExitStack() as using:
        url = clients_of(using.enter_context(shared(folder, start)), folder)["PREFECT_API_URL"]
        using.enter_context(temporary_settings({PREFECT_API_URL: url}))
        # Threads begin with the global settings; prefect_test_harness replaces them in the same way.
        using.enter_context(prefect.context._temporary_global_settings_context(get_settings_context()))
        yield
        APILogWorker.drain_all()  # else its threads look for the server after its end
        EventsWorker.drain_all()


@pytest.fixture(scope="session")
def new_home(prefect_server, migrated) -> Callable[[Path], Path]:
    """Return a function that makes a PREFECT_HOME, with a migrated database, for a server of the test's own."""

    def make(folder: Path) -> Path:
        folder.mkdir()
        shutil.copy(migrated, folder / "prefect.db")
        return folder

    return make


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> dict[str, object]:
    """Write an encoder of two layers, width 32: with `bert-mini`, scoring STS-B five times dominates such a run."""
    return {"model": str(write_tiny(tmp_path_factory.mktemp("encoder"))), "max_length": 24}


@pytest.fixture(scope="session")
def small(encoder) -> dict[str, object]:
    """Return overrides with which recipe `tiny` runs every stage in seconds."""
    return {**SMALL, "encoder": encoder}


@pytest.fixture(scope="session")
def alone(encoder) -> dict[str, object]:
    """Return overrides like `small` with fewer steps and each sentence paired with itself: nothing is translated."""
    return {**ALONE_SMALL, "encoder": encoder}


@pytest.fixture(scope="session")
def new_site(tmp_path_factory) -> Callable[[], RunContext]:
    """Return a function that makes a run context with an empty store."""
    return lambda: RunContext(store=str(tmp_path_factory.mktemp("run") / "store"), device="cpu", threads=1)


@pytest.fixture(scope="module")
def site(new_site) -> RunContext:
    return new_site()


@pytest.fixture(scope="module")
def store(site) -> Store:
    return site.open_store()


@pytest.fixture(scope="module")
def few_stsb_rows(new_site, tmp_path_factory) -> Iterator[RunContext]:
    """Return a context whose mirror has the first rows of STS-B: all rows take half the time of an adaptation."""
    mirror = tmp_path_factory.mktemp("mirror")
    (mirror / "stsb").mkdir()
    for split, rows in (("train", 1000), ("dev", 200), ("test", 300)):
        name = f"{split}.parquet"
        pl.read_parquet(embedded_path("stsb") / name).head(rows).write_parquet(mirror / "stsb" / name)
    with pytest.MonkeyPatch.context() as patch:
        allow_any_rows(patch, "stsb")
        yield new_site().model_copy(update={"mirror": str(mirror)})


@pytest.fixture(scope="module")
def without_charts():
    """Leave the charts of a run's training and pairs out, a third of a small run's time; test_pipeline.py has them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("training_charts", "training_curves", "cosine_charts"):
            patch.setattr(charts, name, lambda *_, **__: [])
        yield


@pytest.fixture(scope="session")
def environment(prefect_server) -> dict[str, str]:
    """Return the environment of a process that uses the tests' server."""
    return {**os.environ, "PREFECT_API_URL": str(get_current_settings().api.url)}


@pytest.fixture
def named_server(environment, monkeypatch):
    """Let a command that runs in this process use the tests' server; it would start one of its own."""
    monkeypatch.setenv("PREFECT_API_URL", environment["PREFECT_API_URL"])


@pytest.fixture(scope="session")
def contents() -> Callable[[Store], dict[str, str]]:

    def digests(store: Store) -> dict[str, str]:
        manifests: list[Manifest] = [store.check(ref) for ref in store.refs()]
        return {manifest.ref.path: manifest.digest for manifest in manifests}

    return digests
