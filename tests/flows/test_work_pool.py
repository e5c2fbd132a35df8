"""Runs on a work pool: the doctor reports it, runs that no worker would start are refused, and a wait is explained."""

import threading
import time
from contextlib import suppress
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.base import PrefectHttpxSyncClient
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.filters import FlowRunFilter
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Completed, Crashed

import bsl.flows.pipeline as pipeline_module
from bsl.flows.cli.terminal.start import FlowStart
from bsl.flows.pipeline import pipeline
from bsl.flows.prefect_server.server import TAG
from bsl.flows.recipes import recipe
from bsl.flows.sweep.points import Job
from bsl.models.errors import EncoderError
from bsl.storage.errors import SourceError
from bsl.tasks.diagnostics.doctor import look_at_pool
from bsl.tasks.stage import pool
from bsl.tasks.stage.pool import NO_FIGURE, PoolError, run_on_pool
from bsl.tasks.stage.progress import planning
from bsl.tasks.stage.run_context import RunContext
from tests.interrupt import interrupted_when


@pytest.fixture
def client(prefect_server):
    with get_client(sync_client=True) as client:
        yield client


def test_doctor_reports_missing_work_pool_and_missing_worker(client):
    pool = f"pool-{uuid4()}"  # for this test alone: other tests share the server
    missing = look_at_pool(pool)
    assert (missing.verdict, missing.found) == ("note", "the server has no such pool")
    assert "docker/server-setup.sh" in missing.remedy
    client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
    idle = look_at_pool(pool)
    assert (idle.verdict, idle.found) == ("note", "no worker polls it")
    assert f"prefect worker start --pool {pool}" in idle.remedy
    client._client.post(f"/work_pools/{pool}/workers/heartbeat", json={"name": "one"})
    assert look_at_pool(pool).verdict == "ok"
    client.update_work_pool(pool, WorkPoolUpdate(is_paused=True))
    paused = look_at_pool(pool)
    assert (paused.verdict, paused.found) == ("note", "it is paused")
    assert f"prefect work-pool resume {pool}" in paused.remedy


@flow
def own_tags(site: RunContext) -> list[str]:
    return list(flow_run.tags)


@flow
def seven(site: RunContext) -> int:
    return 7


def test_repeated_completion_request_leaves_the_run_result_unchanged(prefect_server, tmp_path, monkeypatch):
    """Prefect's client repeats a request after a fault; the server then answers with the state that it recorded."""
    send = PrefectHttpxSyncClient.send

    def send_again(client, request, *more, **options):
        if request.url.path.endswith("/set_state") and b'"COMPLETED"' in request.content:
            send(client, request, *more, **options)
        return send(client, request, *more, **options)

    monkeypatch.setattr(PrefectHttpxSyncClient, "send", send_again)
    monkeypatch.setenv("PREFECT_API_URL", str(get_current_settings().api.url))
    start = FlowStart(RunContext(store=str(tmp_path / "store")), None, watched=False)
    assert start.run(seven, []) == 7


def test_flow_start_adds_the_bsl_tag_to_runs(prefect_server, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", str(get_current_settings().api.url))
    start = FlowStart(RunContext(store=str(tmp_path / "store")), None, watched=False)
    assert start.run(own_tags, []) == [TAG]


@flow
def interrupted(site: RunContext) -> None:
    if flow_run.id:  # not while the run is planned
        raise KeyboardInterrupt


def test_ctrl_c_of_a_run_says_how_it_is_resumed(prefect_server, tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", str(get_current_settings().api.url))
    start = FlowStart(RunContext(store=str(tmp_path / "store")), None, watched=False)
    with pytest.raises(KeyboardInterrupt, match="run the command again to resume"):
        start.run(interrupted, [])


@pytest.mark.parametrize(
    ("error", "named"), [(EncoderError("saved with another pooling"), True), (SourceError("the Hub is silent"), False)]
)
def test_pipeline_returns_its_fault_to_a_sweep_only(error, named, monkeypatch, prefect_server):
    def run(*_):
        raise error

    monkeypatch.setattr(pipeline_module, "run", run)
    ended = pipeline("tiny", of_sweep=True, return_state=True)
    assert (ended.name == NO_FIGURE, ended.is_completed()) == (named, named)
    assert str(error) in ended.message
    assert pipeline("tiny", return_state=True).is_failed()


JOB = Job("tiny", recipe("tiny"))


def send(count=1, at_once=2):
    """Send runs to `bsl-pipeline/any`; none is completed, so that nobody looks for what it made."""
    ended: list[object] = []
    orders = [JOB.parameters(RunContext())] * count
    run_on_pool(orders, at_once, lambda number, fault: ended.append((number, fault)))
    return ended


@pytest.fixture
def server(prefect_server):
    with get_client(sync_client=True) as client:
        yield client
        with suppress(ObjectNotFound):
            client.delete_deployment(client.read_deployment_by_name(pool.DEPLOYMENT).id)
        with suppress(ObjectNotFound):
            client.delete_work_pool("idle")


def deploy(client, limit=None):
    client.create_work_pool(WorkPoolCreate(name="idle", type="process", concurrency_limit=limit))
    return client.create_deployment(client.create_flow(pipeline), "any", work_pool_name="idle")


def states(client, deployment):
    asked = FlowRunFilter.model_validate({"deployment_id": {"any_": [deployment]}})
    return [run.state.type.value for run in client.read_flow_runs(flow_run_filter=asked)]


def test_dry_run_sends_no_runs():
    with planning():
        assert send() == []


def test_runs_that_no_worker_would_start_are_refused(server, monkeypatch):
    with pytest.raises(PoolError, match=r"bsl-pipeline/any: the server has no such deployment\. Run `prefect"):
        send()
    deployment = deploy(server, limit=1)
    run = server.create_flow_run_from_deployment(deployment)
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", str(run.id))
    with pytest.raises(PoolError, match="pool idle allows 1 runs at a time, and this run is one of them"):
        send()
    server.update_work_pool("idle", WorkPoolUpdate(concurrency_limit=2))
    queue = server.read_work_queue_by_name("default", "idle")
    server.update_work_queue(queue.id, concurrency_limit=1)
    with pytest.raises(
        PoolError, match=r"one of them.*`prefect work-queue set-concurrency-limit default --pool idle N`"
    ):
        send()
    monkeypatch.delenv("PREFECT__FLOW_RUN_ID")
    server.update_work_queue(queue.id, concurrency_limit=0)
    with pytest.raises(PoolError, match=r"queue default allows 0 runs at a time\. Raise"):
        send()
    server.delete_work_pool("idle")  # Prefect keeps the deployment, and takes runs of it
    with pytest.raises(PoolError, match="its work pool was deleted"):
        send()
    assert states(server, deployment) == ["SCHEDULED"]  # the first run


@pytest.mark.parametrize(
    ("is_paused", "said"),
    [
        (
            True,
            [
                "runs wait: pool idle is paused. Resume it: `prefect work-pool resume idle`",
                "runs wait: queue default is paused. Resume it: `prefect work-queue resume default --pool idle`",
            ],
        ),
        (False, ["runs wait: no worker polls pool idle. Start one: `prefect worker start --pool idle`"]),
    ],
)
def test_runs_that_wait_say_why(server, caplog, is_paused, said):
    """Regression: `bsl sweep --pool` waited without a word."""
    deployment = deploy(server)
    queue = server.read_work_queue_by_name("default", "idle")
    server.update_work_queue(queue.id, is_paused=is_paused)
    server.update_work_pool("idle", WorkPoolUpdate(is_paused=is_paused))
    with pytest.raises(KeyboardInterrupt), interrupted_when(lambda: states(server, deployment)):
        send()
    assert [record.getMessage() for record in caplog.records if record.name == pool.warn.__module__] == said


def test_runs_that_no_worker_takes_for_a_while_are_explained(server, caplog, monkeypatch):
    """Regression: a sweep on the only worker, with --limit 1, waited without a word."""
    monkeypatch.setattr(pool, "_PATIENCE_S", 1)
    deployment = deploy(server)
    server._client.post("/work_pools/idle/workers/heartbeat", json={"name": "full"})  # it polls, and starts nothing
    with pytest.raises(KeyboardInterrupt), interrupted_when(lambda: "no worker took one in 1 s" in caplog.text):
        send()
    said = [record.getMessage() for record in caplog.records if record.name == pool.warn.__module__]
    assert len(said) == 1
    assert "A worker with --limit 1 that executes this run has no slot" in said[0]
    assert states(server, deployment) == ["CANCELLED"]


def test_keyboard_interrupt_cancels_runs_on_the_work_pool(server, monkeypatch):
    awaited, wait = [], pool.wait_for_flow_run

    async def noted(run, **how):
        awaited.append(run)
        return await wait(run, **how)

    monkeypatch.setattr(pool, "wait_for_flow_run", noted)
    deployment = deploy(server)
    with pytest.raises(KeyboardInterrupt), interrupted_when(lambda: len(awaited) == 2):
        send(count=3, at_once=2)
    assert states(server, deployment) == ["CANCELLED", "CANCELLED"]


def test_run_on_pool_reports_each_run_and_limits_concurrency(server, monkeypatch):
    """No worker takes them: another thread ends them, as workers would."""
    monkeypatch.setattr(pool, "_POLL_S", 0.2)
    deployment = deploy(server)
    most, over = [], threading.Event()
    ends = [Completed(name=NO_FIGURE, message="rank is gone"), Crashed(message="killed")] * 2

    def end_them():
        with get_client(sync_client=True) as client:
            asked = FlowRunFilter.model_validate(
                {"deployment_id": {"any_": [deployment]}, "state": {"type": {"any_": ["SCHEDULED"]}}}
            )
            while not over.is_set():
                runs = client.read_flow_runs(flow_run_filter=asked)
                most.append(len(runs))
                for run in runs[:1]:
                    client.set_flow_run_state(run.id, ends.pop(), force=True)
                time.sleep(0.2)

    worker = threading.Thread(target=end_them)
    worker.start()
    try:
        reported = send(count=4, at_once=2)
    finally:
        over.set()
        worker.join()
    assert sorted(number for number, _ in reported) == [0, 1, 2, 3]
    kinds = sorted(type(fault).__name__ for _, fault in reported)
    assert kinds == ["PoolError", "PoolError", "UnscoredRunError", "UnscoredRunError"]
    assert max(most) <= 2
    assert all("Run this again" in str(fault) for _, fault in reported if isinstance(fault, PoolError))
