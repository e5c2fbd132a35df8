"""`bsl doctor` reports the work pool, and every run has the tag that a server's automations select by."""

from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.base import PrefectHttpxSyncClient
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.runtime import flow_run
from prefect.settings import get_current_settings

import bsl.flows.pipeline as pipeline_module
from bsl.flows.cli.terminal.start import FlowStart
from bsl.flows.pipeline import pipeline
from bsl.flows.prefect_server.server import TAG
from bsl.models.errors import EncoderError
from bsl.storage.errors import SourceError
from bsl.tasks.diagnostics.doctor import look_at_pool
from bsl.tasks.stage.pool import NO_FIGURE
from bsl.tasks.stage.run_context import RunContext


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
