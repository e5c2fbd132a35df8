"""Deployments of prefect.yaml run to their end on a server set up by docker/server-setup.sh, with a worker."""

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.artifacts.store import Store
from tests.log_lines import JSON_LINES, published
from tests.servers import PREFECT, ROOT, SERVER, clients_of, free_port, prepare, runs_in, wait_until_healthy

pytestmark = pytest.mark.slow  # a server, its deployments and a worker take a minute to start
BSL = (sys.executable, "-m", "flows.cli.main")
NAMES = ("tiny", "nli", "any")


@dataclass(frozen=True)
class Cluster:
    """A Prefect server with the deployments, and a process worker.

    Attributes:
        environment: Environment of the clients.
        folder: Folder of the logs.
        store: Store to which the workers publish.
    """

    environment: dict[str, str]
    folder: Path
    store: Store

    def log(self) -> str:
        """Return the worker's log."""
        return (self.folder / "worker.log").read_text()

    def prefect(self, *words: str) -> str:
        """Run a command of Prefect's, which must succeed, and return its output."""
        done = subprocess.run([PREFECT, *words], env=self.environment, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


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
        prepare(environment)
        running.append(start("worker", PREFECT, "worker", "start", "--pool", "gpu"))
        made = Cluster(environment, folder, Store(environment["BSL_STORE"]))
        made.prefect("--no-prompt", "deploy", *(word for name in NAMES for word in ("--name", name)))
        yield made
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(60)


def run_to_its_end(cluster: Cluster, name: str, parameters: dict[str, object]) -> None:
    given = [part for key, value in parameters.items() for part in ("--param", f"{key}={json.dumps(value)}")]
    command = [PREFECT, "deployment", "run", name, *given, "--watch"]
    run = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr + cluster.log()[-3000:]


def sweep_on_the_pool(cluster: Cluster, small: dict[str, object]) -> None:
    """Run a sweep of one point on a worker; the point is a run that the store has already."""
    same = {**small, "training": {**small["training"], "select": "best-or-start"}}  # else a sweep sets `best`
    settings = [part for name, value in same.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    command = [*BSL, "sweep", "tiny", "--over", "training.seed=0", *settings, "--pool"]
    swept = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True)
    assert swept.returncode == 0, swept.stdout + swept.stderr


def test_deployed_tiny_runs_to_its_report_and_its_encoder_is_evaluated(cluster, small):
    store, before = cluster.store, set(cluster.store.refs("report"))
    run_to_its_end(cluster, "bsl-pipeline/tiny", {"overrides": small})
    (report,) = set(store.refs("report")) - before
    assert store.defect(report) is None
    asked = {"models": [str(report)], "suite": ["embedded:stsb/test"], "config": {"precision": "fp32"}}
    run_to_its_end(cluster, "bsl-evaluate/any", asked)
    (evaluation,) = store.refs("evaluation")
    (found,) = store.scan(evaluation, "scores").filter(metric="spearman", protocol="all").collect()["value"]
    figures = store.scan(report, "scores").filter(
        model="after BSL + in-batch negatives", split="test", metric="spearman", protocol="all"
    )
    assert figures.collect()["value"].to_list() == [found]
    sweep_on_the_pool(cluster, small)
    (study,) = store.refs("sweep")
    assert store.scan(study).filter(dataset="stsb test").collect()["mean"].to_list() == [found]
    assert set(store.refs("report")) - before == {report}
    told = published(cluster.log())
    assert told[report.path] == (store.manifest(report).provenance.run, "report")
    assert told[evaluation.path] == (store.manifest(evaluation).provenance.run, "summarise")


def ask(cluster: Cluster, path: str, body: object = None) -> list[dict[str, object]]:
    address = f"{cluster.environment['PREFECT_API_URL']}{path}"
    request = urllib.request.Request(address, json.dumps(body or {}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_a_server_that_is_prepared_twice_has_everything_once(cluster):
    for _ in range(2):
        prepare({**cluster.environment, "BSL_NOTIFY_URL": "http://127.0.0.1:9/webhook"})
    queues = ask(cluster, "/work_pools/gpu/queues/filter")
    assert {queue["name"]: queue["priority"] for queue in queues} == {"urgent": 1, "default": 2, "background": 3}
    assert [pool["name"] for pool in ask(cluster, "/work_pools/filter")] == ["gpu"]
    assert sorted(rule["name"] for rule in ask(cluster, "/automations/filter")) == ["bsl-crashed", "bsl-notify"]
    (nli,) = ask(cluster, "/deployments/filter", {"deployments": {"name": {"any_": ["nli"]}}})
    assert [schedule["schedule"]["cron"] for schedule in nli["schedules"]] == ["0 2 * * 0"]


def test_misspelt_override_is_refused_before_a_run_is_made(cluster):
    command = [PREFECT, "deployment", "run", "bsl-pipeline/tiny", "--param", 'overrides={"training": {"momentun": 1}}']
    run = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "momentun" in run.stdout + run.stderr
