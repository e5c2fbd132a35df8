"""Start a Prefect server and a process worker; environments of processes that use it and the stand-in Hub."""

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
    """Return the environment of a process that uses the stand-in Hub; the Hub's client reads it on import."""
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
    """Run the server at this process's PREFECT_API_URL, with its log in `folder`."""
    (folder / "prefect").mkdir(parents=True, exist_ok=True)
    url = os.environ["PREFECT_API_URL"]
    port = url.removesuffix("/api").rpartition(":")[2]
    with _running(folder, "server", [*SERVER, "--port", port], {}):
        wait_until_healthy(url)
        yield


@contextmanager
def worker(folder: Path, changes: Mapping[str, str]) -> Iterator[None]:
    """Run a worker of the server in this process's environment plus the changes, with its log in `folder`."""
    prefect("work-pool", "create", "gpu", "--type", "process", "--overwrite")
    with _running(folder, "worker", [str(PREFECT), "worker", "start", "--pool", "gpu"], changes):
        yield


def prefect(*command: str) -> str:
    """Run a command of Prefect's and return its output.

    Raises:
        RuntimeError: The command failed; the message contains its output.
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
