"""After kill -9 of a worker with its run, and of the server, the deployment's next run starts."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.servers import PREFECT, ROOT, SERVER, clients_of, free_port, runs_in, wait_until_healthy


class Cluster:
    """A server and a process worker; each leads a process group, which can be killed whole."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        own = {**clients_of(self.port, home), **runs_in(ROOT), "BSL_STORE": str(folder / "store")}
        self.environment, self.url = {**os.environ, **own}, own["PREFECT_API_URL"]

    def server(self) -> None:
        self._start("server", *SERVER, "--port", str(self.port))
        wait_until_healthy(self.url)

    def worker(self) -> None:
        self._start("worker", PREFECT, "worker", "start", "--pool", "gpu")

    def prefect(self, *command: str) -> None:
        subprocess.run([PREFECT, *command], env=self.environment, cwd=ROOT, check=True, capture_output=True)

    def kill(self) -> None:
        for process in self.running.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        self.running.clear()

    def ask(self, path: str, body: object = None) -> dict[str, object]:
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

    def run_until_it_runs(self, seconds: float = 240) -> None:
        deployment = self.ask("/deployments/name/bsl-pipeline/tiny")["id"]
        run = self.ask(f"/deployments/{deployment}/create_flow_run", {"state": {"type": "SCHEDULED"}})["id"]
        end, state = time.monotonic() + seconds, ""
        while time.monotonic() < end and state not in {"RUNNING", "COMPLETED"}:
            time.sleep(0.5)
            state = str(self.ask(f"/flow_runs/{run}")["state_type"])
        assert state in {"RUNNING", "COMPLETED"}, (self.folder / "worker.log").read_text()[-3000:]

    def _start(self, name: str, *command: str | Path) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, env=self.environment, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )


@pytest.fixture
def cluster(tmp_path, new_home):
    made = Cluster(tmp_path, new_home(tmp_path / "home"))
    yield made
    made.kill()


@pytest.mark.slow
@pytest.mark.timeout(1200)  # two servers and two workers start; on a busy machine each takes half a minute
def test_a_killed_server_strands_no_deployment(cluster):
    cluster.server()
    cluster.prefect("work-pool", "create", "gpu", "--type", "process")
    cluster.prefect("--no-prompt", "deploy", "--name", "tiny")
    cluster.worker()
    cluster.run_until_it_runs()
    cluster.kill()
    with pytest.raises(urllib.error.URLError):
        cluster.ask("/health")
    cluster.server()
    cluster.worker()
    cluster.run_until_it_runs()
