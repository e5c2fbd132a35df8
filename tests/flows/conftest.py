"""One Prefect server for all flow tests, and `tiny` made small."""

import os
from collections.abc import Callable

import polars as pl
import pytest
from prefect.settings import get_current_settings
from prefect.testing.utilities import prefect_test_harness

from flows.recipes.shared import ALONE
from storage.manifest import Manifest
from storage.store import Store

SMALL = {
    "ingest": {"corpus": {"limit": 96}},
    "training": {"batch_size": 16, "epochs": 1, "max_steps": 6, "eval_every": 3, "collapse": None},
    "evaluation": {"bootstrap": {"resamples": 100}},
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


@pytest.fixture(scope="session")
def small() -> dict[str, object]:
    """Overrides that take recipe `tiny` the same way in seconds."""
    return SMALL


@pytest.fixture(scope="session")
def alone() -> dict[str, object]:
    """The same in fewer steps on sentences beside themselves: nothing is translated."""
    return ALONE_SMALL


@pytest.fixture(scope="session")
def environment(prefect_server) -> dict[str, str]:
    """The environment of a process that talks to the tests' server."""
    return {**os.environ, "PREFECT_API_URL": str(get_current_settings().api.url), "OMP_NUM_THREADS": "2"}


@pytest.fixture(scope="session")
def contents() -> Callable[[Store], dict[str, str]]:
    """Artifact → digest of its files: equal for byte-identical stores."""

    def digests(store: Store) -> dict[str, str]:
        manifests: list[Manifest] = [store.check(ref) for ref in store.refs()]
        return {manifest.ref.path: manifest.digest for manifest in manifests}

    return digests


@pytest.fixture
def spearman() -> Callable[[pl.DataFrame, str, str], float]:
    """The figure of a system on a split."""

    def figure(scores: pl.DataFrame, model: str, split: str) -> float:
        rows = scores.filter(model=model, split=split, metric="spearman", protocol="all", subset="all")
        return float(rows["value"].item())

    return figure
