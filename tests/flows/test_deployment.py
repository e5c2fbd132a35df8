"""Deployments of prefect.yaml run to their end on a server set up by docker/server-setup.sh, with a worker."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from bsl.storage.artifacts.store import Store
from tests.log_lines import JSON_LINES, published
from tests.servers import PREFECT, ROOT, Cluster, add_schedules, children, prepare, runs_in

pytestmark = pytest.mark.slow  # a server, its deployments and a worker take a minute to start
BSL = (sys.executable, "-m", "bsl.flows.cli.main")
NAMES = ("tiny", "nli", "any")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, new_home):
    folder = tmp_path_factory.mktemp("cluster")
    made = Cluster(folder, new_home(folder / "home"), BSL_SAVE_EVERY="20", **JSON_LINES)
    try:
        made.server()
        prepare(made.environment)
        made.worker()
        made.prefect("--no-prompt", "deploy", *(word for name in NAMES for word in ("--name", name)))
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="module")
def store(cluster):
    return Store(cluster.environment["BSL_STORE"])


def run_to_its_end(cluster, name, parameters):
    given = [part for key, value in parameters.items() for part in ("--param", f"{key}={json.dumps(value)}")]
    command = [PREFECT, "deployment", "run", name, *given, "--watch"]
    run = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr + cluster.log()[-3000:]


def sweep(cluster, over, changes, *more):
    settings = [part for name, value in changes.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    command = [*BSL, "sweep", "tiny", "--over", over, *settings, *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=cluster.environment, cwd=ROOT, text=True, **pipes)


def test_deployed_run_evaluation_and_pool_sweep_report_equal_scores(cluster, store, small):
    before = set(store.refs("report"))
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
    # One point, which is a run that the store has; without `select`, a sweep sets `best`.
    same = {**small, "training": {**small["training"], "select": "best-or-start"}}
    swept = sweep(cluster, "training.seed=0", same, "--pool")
    told, _ = swept.communicate(timeout=300)
    assert swept.returncode == 0, told
    (study,) = store.refs("sweep")
    assert store.scan(study).filter(dataset="stsb test").collect()["mean"].to_list() == [found]
    assert set(store.refs("report")) - before == {report}
    told = published(cluster.log())
    assert told[report.path] == (store.manifest(report).provenance.run, "report")
    assert told[evaluation.path] == (store.manifest(evaluation).provenance.run, "summarise")


@pytest.mark.timeout(1200)
def test_killed_pool_sweep_resumes_to_the_uninterrupted_table(cluster, alone, tmp_path):
    changes = {**alone, "training": {**alone["training"], "max_steps": 200, "epochs": 1000, "eval_every": 100}}

    def start(store, *more):
        over = "training.objective.momentum=0.5,0.9,1.0"
        return sweep(cluster, over, changes, "--workers", "1", "--store", store.url, *more)

    killed, undisturbed = (Store(str(tmp_path / name)) for name in ("killed", "undisturbed"))
    first = start(killed, "--pool")
    while not (killed.refs("report") and list(killed.local.glob(".scratch/checkpoint/*/step-*"))):
        assert first.poll() is None, first.stdout.read()
        time.sleep(0.02)
    (done,) = killed.refs("report")
    for process in children(cluster.running["worker"].pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    told, _ = first.communicate(timeout=300)
    assert first.returncode == 1, told
    assert "0.9, seed 0: run " in told, told
    assert "ended as Crashed" in told
    assert killed.refs("report") == [done]  # the last point did not start
    before, logged = killed.manifest(done), len(cluster.log())

    for run in (start(killed, "--pool"), start(undisturbed)):
        told, _ = run.communicate(timeout=300)
        assert run.returncode == 0, told
    assert sum("resuming at step" in line for line in cluster.log()[logged:].splitlines()) == 1
    assert killed.manifest(done) == before
    tables = [store.scan(ref).collect() for store in (killed, undisturbed) for ref in store.refs("sweep")]
    assert len(tables) == 2
    assert tables[0].equals(tables[1])


def test_server_setup_is_idempotent(cluster):
    for _ in range(2):
        prepare({**cluster.environment, "BSL_NOTIFY_URL": "http://127.0.0.1:9/webhook"})
    queues = cluster.ask("/work_pools/gpu/queues/filter", {})
    assert {queue["name"]: queue["priority"] for queue in queues} == {"urgent": 1, "default": 2, "background": 3}
    assert [pool["name"] for pool in cluster.ask("/work_pools/filter", {})] == ["gpu"]
    assert sorted(rule["name"] for rule in cluster.ask("/automations/filter", {})) == ["bsl-crashed", "bsl-notify"]


def test_deploying_again_keeps_paused_and_added_schedules(cluster):
    def nli():
        (found,) = cluster.ask("/deployments/filter", {"deployments": {"name": {"any_": ["nli"]}}})
        return found

    for _ in range(2):
        add_schedules(cluster.environment)
    scheduled = {
        "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}},
        "deployments": {"id": {"any_": [nli()["id"]]}},
    }
    end = time.monotonic() + 120
    while not cluster.ask("/flow_runs/filter", scheduled):  # the server's own libraries once failed at this
        assert time.monotonic() < end, "the server creates no runs for the schedule"
        time.sleep(0.5)
    (weekly,) = nli()["schedules"]
    assert (weekly["schedule"]["cron"], weekly["active"]) == ("0 2 * * 0", True)
    name = "bsl-pipeline/nli"
    for words in (["pause", name, weekly["id"]], ["create", name, "--cron", "0 5 * * 1"]):
        subprocess.run([PREFECT, "deployment", "schedule", *words], env=cluster.environment, check=True)
    before = sorted((each["schedule"]["cron"], each["active"]) for each in nli()["schedules"])
    assert before == [("0 2 * * 0", False), ("0 5 * * 1", True)]
    deploy = [PREFECT, "--no-prompt", "deploy", "--name", "nli"]
    subprocess.run(deploy, env={**cluster.environment, **runs_in(ROOT)}, cwd=ROOT, check=True, capture_output=True)
    assert sorted((each["schedule"]["cron"], each["active"]) for each in nli()["schedules"]) == before


def test_deployment_run_rejects_misspelt_override(cluster):
    command = [PREFECT, "deployment", "run", "bsl-pipeline/tiny", "--param", 'overrides={"training": {"momentun": 1}}']
    run = subprocess.run(command, env=cluster.environment, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "momentun" in run.stdout + run.stderr
