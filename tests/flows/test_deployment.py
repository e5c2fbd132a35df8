"""prefect.yaml for real: a server on a free port, `prefect deploy`, process workers, runs to their reports.

One is a deployment's whole run, one passes from pool to pool, each part started by the event of the one before it.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.store import Store
from tests.log_lines import JSON_LINES, published
from tests.servers import PREFECT, ROOT, SERVER, clients_of, free_port, runs_in, wait_until_healthy

BSL = (sys.executable, "-m", "flows.cli.main")
PARTS = ("part-corpus", "part-views", "part-pairs", "part-embeddings", "part-report")
BEGUN = '"message":"Beginning flow run'  # in a worker's log


@dataclass(frozen=True)
class Cluster:
    """A server with the deployments, and a process worker on each pool.

    Attributes:
        environment: of their clients.
        folder: where their logs lie.
        store: what the workers publish to.
    """

    environment: dict[str, str]
    folder: Path
    store: Store

    def log(self, pool: str) -> str:
        """What the worker of a pool has said."""
        return (self.folder / f"worker-{pool}.log").read_text()

    def prefect(self, *words: str) -> None:
        """A command of Prefect's, which must succeed."""
        done = subprocess.run([PREFECT, *words], env=self.environment, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, new_home):
    folder, port = tmp_path_factory.mktemp("cluster"), free_port()
    environment = {
        **os.environ,
        **clients_of(port, new_home(folder / "home")),
        **runs_in(ROOT),
        "BSL_STORE": str(folder / "store"),
        **JSON_LINES,
    }

    def start(name: str, *command: str | Path) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)

    running = [start("server", *SERVER, "--port", str(port))]
    try:
        wait_until_healthy(environment["PREFECT_API_URL"])
        pools = subprocess.run([*BSL, "pools"], env=environment, cwd=ROOT, capture_output=True, text=True)
        assert pools.returncode == 0, pools.stderr
        running += [start(f"worker-{pool}", PREFECT, "worker", "start", "--pool", pool) for pool in ("cpu", "gpu")]
        made = Cluster(environment, folder, Store(environment["BSL_STORE"]))
        made.prefect("--no-prompt", "deploy", *(word for name in ("tiny", "any", *PARTS) for word in ("--name", name)))
        yield made
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(60)


def run_to_its_end(cluster: Cluster, name: str, parameters: dict[str, object]) -> None:
    given = [part for key, value in parameters.items() for part in ("--param", f"{key}={json.dumps(value)}")]
    command = [PREFECT, "deployment", "run", name, *given, "--watch"]
    run = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr + cluster.log("gpu")[-3000:]


def sweep_on_the_pool(cluster: Cluster, small: dict[str, object]) -> None:
    """A grid of one point, which a worker runs: the run that is there already."""
    same = {**small, "training": {**small["training"], "select": "best-or-start"}}  # else a grid tells what it ended at
    settings = [part for name, value in same.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    command = [*BSL, "sweep", "tiny", "--over", "training.seed=0", *settings, "--pool"]
    swept = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True)
    assert swept.returncode == 0, swept.stdout + swept.stderr


def test_deployed_tiny_runs_to_its_report_and_its_encoder_is_evaluated(cluster, small):
    store, before = cluster.store, set(cluster.store.refs("report"))
    run_to_its_end(cluster, "bsl-pipeline/tiny", {"overrides": small})
    (report,) = set(store.refs("report")) - before
    assert store.defect(report) is None
    run_to_its_end(cluster, "bsl-evaluate/any", {"models": [str(report)], "suite": ["embedded:stsb/test"]})
    (evaluation,) = store.refs("evaluation")
    (found,) = store.scan(evaluation, "scores").filter(metric="spearman", protocol="all").collect()["value"]
    figures = store.scan(report, "scores").filter(
        model="after BSL + in-batch negatives", split="test", metric="spearman", protocol="all"
    )
    assert figures.collect()["value"].to_list() == [found]
    sweep_on_the_pool(cluster, small)
    (study,) = store.refs("study")
    assert store.scan(study).filter(dataset="stsb test").collect()["mean"].to_list() == [found]
    assert set(store.refs("report")) - before == {report}
    told = published(cluster.log("gpu"))
    assert told[report.path] == (store.manifest(report).provenance.run, "report")
    assert told[evaluation.path] == (store.manifest(evaluation).provenance.run, "summarise")


def test_misspelt_override_is_refused_before_a_run_is_made(cluster):
    command = [PREFECT, "deployment", "run", "bsl-pipeline/tiny", "--param", 'overrides={"training": {"momentun": 1}}']
    run = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "momentun" in run.stdout + run.stderr


@pytest.mark.timeout(1800)  # five runs start, each in half a minute of a busy machine
def test_a_run_passes_from_pool_to_pool_by_events(cluster, alone):
    store, before = cluster.store, set(cluster.store.refs("report"))
    begun = [cluster.log(pool).count(BEGUN) for pool in ("cpu", "gpu")]
    given = ["--param", "recipe_name=tiny", "--param", f"overrides={json.dumps(alone)}"]
    cluster.prefect("deployment", "run", "bsl-pipeline/part-corpus", *given)
    end = time.monotonic() + 1200
    while set(store.refs("report")) == before and time.monotonic() < end:
        time.sleep(1)
    logs = {pool: cluster.log(pool) for pool in ("cpu", "gpu")}
    (report,) = set(store.refs("report")) - before
    assert store.defect(report) is None, logs
    assert [log.count(BEGUN) - count for log, count in zip(logs.values(), begun, strict=True)] == [3, 2], logs
