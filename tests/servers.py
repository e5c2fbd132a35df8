"""Start Prefect servers and workers as subprocesses of tests."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
PREFECT = Path(sys.executable).with_name("prefect")
SERVER = (sys.executable, str(ROOT / "tests" / "sqlite_server.py"), "server", "start", "--host", "127.0.0.1")
SECONDS_TO_START = 300.0  # on a busy machine


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clients_of(port: int, home: Path) -> dict[str, str]:
    """Return the environment of a server and its clients; Prefect reads it on import."""
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }


def runs_in(folder: Path) -> dict[str, str]:
    """Return the environment of `prefect deploy` and of a worker whose runs start in a folder."""
    # prefect.yaml takes the folder from PWD.
    return {"PWD": str(folder), "PYTHONPATH": str(ROOT), "PREFECT_WORKER_QUERY_SECONDS": "1", "NO_COLOR": "1"}


def prepare(environment: Mapping[str, str]) -> None:
    """Give a server its work pool, queues and automations."""
    own = {**environment, "PATH": f"{PREFECT.parent}:{environment['PATH']}"}
    done = subprocess.run([ROOT / "docker" / "server-setup.sh"], env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def wait_until_healthy(url: str) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise TimeoutError(f"{url} is not healthy after {SECONDS_TO_START:.0f} s")


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # a zombie, in a container without an init process


def children(process: int) -> list[int]:
    """Return the descendants of a process, whichever thread started them."""
    direct: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            direct += map(int, listed.read_text().split())
    return [found for child in sorted(direct) for found in (child, *children(child))]
