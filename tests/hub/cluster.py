"""A Prefect server with one process worker, and the settings of processes that talk to it and to the stand-in Hub."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers import PREFECT, ROOT, SERVER, wait_until_healthy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.hub.server import StandInHub


def of_the_hub(hub: StandInHub, home: Path) -> dict[str, str]:
    """What a process needs whose Hub is the stand-in; the Hub's client reads it on import."""
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """The server at this process's PREFECT_API_URL; its log lies in `folder`."""
    (folder / "prefect").mkdir(parents=True, exist_ok=True)
    url = os.environ["PREFECT_API_URL"]
    port = url.removesuffix("/api").rpartition(":")[2]
    with _running(folder, "server", [*SERVER, "--port", port], {}):
        wait_until_healthy(url)
        yield


@contextmanager
def worker(folder: Path, changes: Mapping[str, str]) -> Iterator[None]:
    """A worker of the server, with this process's environment but for the changes; its log lies in `folder`."""
    prefect("work-pool", "create", "gpu", "--type", "process", "--overwrite")
    with _running(folder, "worker", [str(PREFECT), "worker", "start", "--pool", "gpu"], changes):
        yield


def prefect(*command: str) -> str:
    """What a command of Prefect's prints.

    Raises:
        RuntimeError: it failed; says what it printed.
    """
    done = subprocess.run([PREFECT, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"prefect {' '.join(command[:3])} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def _running(folder: Path, name: str, command: list[str], changes: Mapping[str, str]) -> Iterator[None]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **changes}, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
