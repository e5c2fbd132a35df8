"""Fixtures of all flow tests: one Prefect server, and small settings of recipe `tiny`."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from prefect.settings import get_current_settings
from prefect.testing.utilities import prefect_test_harness

from flows.recipes.shared import ALONE
from storage.artifacts.manifest import Manifest
from storage.artifacts.store import Store
from tests.tiny_encoder import write_tiny

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


@pytest.fixture(scope="session", autouse=True)
def prefect_server():
    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture(scope="session", autouse=True)
def migrated(prefect_server, tmp_path_factory) -> Path:
    """Return the database of a server that has done nothing yet; Prefect's migrations of it take six seconds."""
    url = get_current_settings().server.database.connection_url
    assert url is not None
    path = tmp_path_factory.mktemp("migrated") / "prefect.db"
    with (
        closing(sqlite3.connect(url.get_secret_value().partition(":///")[2])) as own,
        closing(sqlite3.connect(path)) as new,
    ):
        own.backup(new)
    return path


@pytest.fixture(scope="session")
def new_home(migrated) -> Callable[[Path], Path]:
    """Return a function that makes a PREFECT_HOME, with a migrated database, for a server of the test's own."""

    def make(folder: Path) -> Path:
        folder.mkdir()
        shutil.copy(migrated, folder)
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
def environment(prefect_server) -> dict[str, str]:
    """Return the environment of a process that uses the tests' server."""
    return {**os.environ, "PREFECT_API_URL": str(get_current_settings().api.url), "OMP_NUM_THREADS": "2"}


@pytest.fixture
def named_server(environment, monkeypatch):
    """Let a command that runs in this process use the tests' server; it would start one of its own."""
    monkeypatch.setenv("PREFECT_API_URL", environment["PREFECT_API_URL"])


@pytest.fixture(scope="session")
def contents() -> Callable[[Store], dict[str, str]]:
    """Return a function: store → digest of each artifact's files; equal for byte-identical stores."""

    def digests(store: Store) -> dict[str, str]:
        manifests: list[Manifest] = [store.check(ref) for ref in store.refs()]
        return {manifest.ref.path: manifest.digest for manifest in manifests}

    return digests


@pytest.fixture
def spearman() -> Callable[[pl.DataFrame, str, str], float]:
    """Return a function that looks up a system's Spearman correlation on a split."""

    def figure(scores: pl.DataFrame, model: str, split: str) -> float:
        rows = scores.filter(model=model, split=split, metric="spearman", protocol="all", subset="all")
        return float(rows["value"].item())

    return figure
