"""A Prefect server with one process worker, and the settings of processes that talk to it and to the stand-in Hub."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.hub.server import StandInHub

ROOT: Final = Path(__file__).parents[2]
PREFECT: Final = Path(sys.executable).with_name("prefect")
SECONDS_TO_START: Final = 300.0


def address(folder: Path) -> dict[str, str]:
    """What a process needs to talk to the `server` that it starts; Prefect reads it on import."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }


def of_deployments(folder: Path) -> dict[str, str]:
    """What `prefect deploy` and a worker need whose runs start in a folder."""
    # prefect.yaml takes the folder from PWD.
    return {"PWD": str(folder), "PYTHONPATH": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "1", "NO_COLOR": "1"}


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
    program = [sys.executable, str(ROOT / "tests" / "sqlite_server.py")]
    with _running(folder, "server", [*program, "server", "start", "--host", "127.0.0.1", "--port", port], {}):
        _wait(f"{url}/health")
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


def _wait(url: str) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise TimeoutError(f"{url} is not healthy after {SECONDS_TO_START:.0f} s")
