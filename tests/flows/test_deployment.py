"""prefect.yaml for real: a server on a free port, `prefect deploy`, a process worker, a run to its report."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from storage.store import Store

ROOT = Path(__file__).parents[2]
PREFECT = Path(sys.executable).with_name("prefect")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_healthy(url: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise TimeoutError(f"{url} is not healthy after {seconds} s")


@pytest.fixture
def cluster(tmp_path):
    """A server and one process worker; yields the environment of a client and the store that the worker uses."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    environment = {
        **os.environ,
        "PREFECT_HOME": str(tmp_path / "home"),
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "BSL_STORE": str(tmp_path / "store"),
        "PWD": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
    }
    (tmp_path / "home").mkdir()

    def start(name: str, *command: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{name}.log").open("wb") as log:
            return subprocess.Popen([PREFECT, *command], env=environment, cwd=ROOT, stdout=log, stderr=log)

    server = start("server", "server", "start", "--host", "127.0.0.1", "--port", str(port))
    worker = None
    try:
        wait_until_healthy(url)
        subprocess.run(
            [PREFECT, "work-pool", "create", "gpu", "--type", "process"],
            env=environment,
            check=True,
            capture_output=True,
        )
        worker = start("worker", "worker", "start", "--pool", "gpu")
        yield environment
    finally:
        for process in (worker, server):
            if process is not None:
                process.terminate()
                process.wait(60)


def run_to_its_end(name: str, parameters: dict[str, object], environment: dict[str, str], worker_log: Path) -> None:
    given = [part for key, value in parameters.items() for part in ("--param", f"{key}={json.dumps(value)}")]
    command = [PREFECT, "deployment", "run", name, *given, "--watch"]
    run = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr + worker_log.read_text()[-3000:]


def sweep_on_the_pool(environment: dict[str, str], small: dict[str, object]) -> None:
    """A grid of one point, which a worker runs: the run that is there already."""
    settings = [part for name, value in small.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    command = [sys.executable, "-m", "flows.cli.main", "sweep", "tiny", "--over", "training.seed=0", *settings]
    swept = subprocess.run([*command, "--runner", "pool"], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert swept.returncode == 0, swept.stdout + swept.stderr


def test_deployed_tiny_runs_to_its_report_and_its_encoder_is_evaluated(cluster, small, tmp_path):
    deployed = subprocess.run(
        [PREFECT, "--no-prompt", "deploy", "--name", "tiny", "--name", "any"],
        env=cluster,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    worker_log, store = tmp_path / "worker.log", Store(cluster["BSL_STORE"])
    run_to_its_end("bsl-pipeline/tiny", {"overrides": small}, cluster, worker_log)
    (report,) = store.refs("report")
    assert store.defect(report) is None
    asked = {"models": [str(report)], "suite": ["embedded:stsb/test"]}
    run_to_its_end("bsl-evaluate/any", asked, cluster, worker_log)
    (evaluation,) = store.refs("evaluation")
    (found,) = store.scan(evaluation, "scores").filter(metric="spearman", protocol="all").collect()["value"]
    figures = store.scan(report, "scores").filter(
        model="after BSL + in-batch negatives", split="test", metric="spearman", protocol="all"
    )
    assert figures.collect()["value"].to_list() == [found]
    sweep_on_the_pool(cluster, small)
    (study,) = store.refs("study")
    assert store.scan(study).filter(dataset="stsb test").collect()["mean"].to_list() == [found]
    assert store.refs("report") == [report]


def test_misspelt_override_is_refused_before_a_run_is_made(cluster):
    deploy = [PREFECT, "--no-prompt", "deploy", "--name", "tiny"]
    subprocess.run(deploy, env=cluster, cwd=ROOT, check=True, capture_output=True)
    command = [PREFECT, "deployment", "run", "bsl-pipeline/tiny", "--param", 'overrides={"training": {"momentun": 1}}']
    run = subprocess.run(command, env=cluster, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "momentun" in run.stdout + run.stderr
