"""Start Prefect servers and workers as subprocesses of tests."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
PREFECT = Path(sys.executable).with_name("prefect")
SERVER = (str(PREFECT), "server", "start", "--host", "127.0.0.1")
SECONDS_TO_START = 300.0  # on a busy machine
SECONDS_TO_END = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clients_of(port: int, home: Path) -> dict[str, str]:
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
    own = {**environment, "PATH": f"{PREFECT.parent}:{environment['PATH']}"}
    _run([ROOT / "docker" / "server-setup.sh"], own)


def add_schedules(environment: Mapping[str, str]) -> None:
    _run([ROOT / "docker" / "schedules.sh"], {**environment, "PATH": f"{PREFECT.parent}:{environment['PATH']}"})


def _run(command: list[Path], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
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


@contextlib.contextmanager
def shared(folder: Path, start: Callable[[], tuple[int, int]]) -> Iterator[int]:
    """Use a server that the first of several processes starts, and the last one ends; yield its port.

    Args:
        folder: folder of its database, the same for all processes.
        start: starts the server, waits until it answers, and returns its process and port.
    """
    known = folder / "server.json"
    with (folder / "turn.lock").open("w") as turn, (folder / "users.lock").open("w") as users:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not known.exists():
            known.write_text(json.dumps(start()))
        process, port = json.loads(known.read_text())
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        try:
            yield port
        finally:
            fcntl.flock(turn, fcntl.LOCK_EX)
            with contextlib.suppress(BlockingIOError):  # others use it
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                known.unlink()
                os.kill(process, signal.SIGTERM)
                end = time.monotonic() + SECONDS_TO_END
                while is_alive(process) and time.monotonic() < end:
                    time.sleep(0.05)


def detached(command: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Start a process that may outlive this one, and return its id."""
    with log.open("wb") as output:
        shell = ["sh", "-c", '"$@" >&2 & echo $!', "sh", *command]
        return int(subprocess.run(shell, env=environment, stdout=subprocess.PIPE, stderr=output, check=True).stdout)


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # a zombie, in a container without an init process


def children(process: int) -> list[int]:
    direct: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            direct += map(int, listed.read_text().split())
    return [found for child in sorted(direct) for found in (child, *children(child))]


class Cluster:
    """A Prefect server and a process worker; each leads a process group, which can be killed whole."""

    def __init__(self, folder: Path, home: Path, **own: str) -> None:
        self._port = free_port()
        clients = clients_of(self._port, home)
        self.folder, self.url = folder, clients["PREFECT_API_URL"]
        self.environment = {**os.environ, **clients, **runs_in(ROOT), "BSL_STORE": str(folder / "store"), **own}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def server(self) -> None:
        self._start("server", *SERVER, "--port", str(self._port))
        wait_until_healthy(self.url)

    def worker(self) -> None:
        self._start("worker", PREFECT, "worker", "start", "--pool", "gpu")

    def prefect(self, *words: str) -> str:
        done = subprocess.run([PREFECT, *words], env=self.environment, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"})
        for _ in range(120):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503:  # SQLite is busy; Prefect's own clients also wait
                    raise
                time.sleep(0.5)
        raise TimeoutError(f"{self.url}{path}: 503 for a minute")

    def log(self) -> str:
        return (self.folder / "worker.log").read_text()

    def kill(self) -> None:
        for process in self.running.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        self.running.clear()

    def _start(self, name: str, *command: str | Path) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, env=self.environment, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )
