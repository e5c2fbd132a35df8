"""The parts of a run on their pools, each started by the event of the one before it, on a live server with workers."""

import json
import os
import subprocess
import time

import pytest

from storage.store import Store
from tests.flows.test_deployment import PREFECT, ROOT, free_port, wait_until_healthy
from tests.flows.test_secrets import bsl

PARTS = ("part-corpus", "part-views", "part-pairs", "part-embeddings", "part-report")


@pytest.mark.timeout(1800)  # a server, two workers and five runs start, each in half a minute of a busy machine
def test_a_run_passes_from_pool_to_pool_by_events(tmp_path, alone):
    port = free_port()
    environment = {
        **os.environ,
        "PREFECT_HOME": str(tmp_path / "home"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "BSL_STORE": str(tmp_path / "store"),
        "PWD": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
    }
    (tmp_path / "home").mkdir()

    def start(name: str, *words: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{name}.log").open("wb") as log:
            return subprocess.Popen([PREFECT, *words], env=environment, cwd=ROOT, stdout=log, stderr=log)

    running = [start("server", "server", "start", "--host", "127.0.0.1", "--port", str(port))]
    try:
        wait_until_healthy(environment["PREFECT_API_URL"], 240)
        made = bsl(environment, ROOT, "pools")
        assert made.returncode == 0, made.stderr
        names = [word for part in PARTS for word in ("--name", part)]
        deploy = [PREFECT, "--no-prompt", "deploy", *names]
        deployed = subprocess.run(deploy, env=environment, cwd=ROOT, capture_output=True, text=True)
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        running += [start(f"worker-{pool}", "worker", "start", "--pool", pool) for pool in ("cpu", "gpu")]
        given = ["--param", "recipe_name=tiny", "--param", f"overrides={json.dumps(alone)}"]
        begin = [PREFECT, "deployment", "run", "bsl-pipeline/part-corpus", *given]
        subprocess.run(begin, env=environment, cwd=ROOT, check=True, capture_output=True)
        store, end = Store(environment["BSL_STORE"]), time.monotonic() + 1200
        while not store.refs("report") and time.monotonic() < end:
            time.sleep(1)
        logs = {pool: (tmp_path / f"worker-{pool}.log").read_text() for pool in ("cpu", "gpu")}
        (report,) = store.refs("report")
        assert store.defect(report) is None, logs
        assert [logs[pool].count("Beginning flow run") for pool in ("cpu", "gpu")] == [3, 2], logs
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(60)
