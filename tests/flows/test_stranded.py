"""After kill -9 of a worker with its run, and of the server, the deployment's next run starts."""

import time
import urllib.error

import pytest

from tests.servers import Cluster


def run_until_it_runs(cluster, seconds=240):
    deployment = cluster.ask("/deployments/name/bsl-pipeline/tiny")["id"]
    run = cluster.ask(f"/deployments/{deployment}/create_flow_run", {"state": {"type": "SCHEDULED"}})["id"]
    end, state = time.monotonic() + seconds, ""
    while time.monotonic() < end and state not in {"RUNNING", "COMPLETED"}:
        time.sleep(0.5)
        state = str(cluster.ask(f"/flow_runs/{run}")["state_type"])
    assert state in {"RUNNING", "COMPLETED"}, cluster.log()[-3000:]


@pytest.fixture
def cluster(tmp_path, new_home):
    made = Cluster(tmp_path, new_home(tmp_path / "home"))
    yield made
    made.kill()


@pytest.mark.slow
@pytest.mark.timeout(1200)  # two servers and two workers start; on a busy machine each takes half a minute
def test_deployment_runs_again_after_server_and_worker_are_killed(cluster):
    cluster.server()
    cluster.prefect("work-pool", "create", "gpu", "--type", "process")
    cluster.prefect("--no-prompt", "deploy", "--name", "tiny")
    cluster.worker()
    run_until_it_runs(cluster)
    cluster.kill()
    with pytest.raises(urllib.error.URLError):
        cluster.ask("/health")
    cluster.server()
    cluster.worker()
    run_until_it_runs(cluster)
