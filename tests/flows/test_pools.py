"""`bsl pools` shows what would change, changes it once and leaves what a person set; prefect.yaml agrees with it."""

import http.server
import threading
from pathlib import Path
from uuid import uuid4

import prefect
import pytest
import yaml
from prefect import flow
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.runtime import flow_run
from prefect.settings import get_current_settings

from flows.automations import TAG, WEBHOOK
from flows.cli.main import main
from flows.cli.starting import Start
from flows.errands import do_errand
from flows.examining import examine_server
from flows.pools import POOLS, QUEUES, SCHEDULES, find_changes
from flows.prefect_server.server import RUN_SETTINGS
from tasks.site import Site

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server(prefect_server, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", str(get_current_settings().api.url))
    monkeypatch.delenv("BSL_NOTIFY_URL", raising=False)
    with get_client(sync_client=True) as client:
        before = {deployment.id for deployment in client.read_deployments()}
        yield client
        for deployment in client.read_deployments():  # tests of other files ask this server for what it lacks
            if deployment.id not in before:
                client.delete_deployment(deployment.id)


def todo(client, **asked) -> list[str]:
    return [change.subject for change in find_changes(client, **asked) if change.make is not None]


def test_a_server_is_made_ready_once_and_keeps_what_a_person_set(server, monkeypatch, capsys):
    assert main(["pools", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "pool gpu" in shown
    assert "to change" in shown
    assert server.read_work_pools() == []
    assert main(["pools", "--limit", "gpu=2"]) == 0
    assert {pool.name: pool.concurrency_limit for pool in server.read_work_pools()} == {"gpu": 2, "cpu": 4}
    for pool in POOLS:
        assert {queue.name: queue.priority for queue in server.read_work_queues(pool.name)} == {
            queue.name: queue.priority for queue in QUEUES
        }
        template = server.read_work_pool(pool.name).base_job_template
        assert template["variables"]["properties"]["env"]["default"] == RUN_SETTINGS
    (lost,) = server.read_automations()
    assert lost.trigger.within.total_seconds() == 90
    capsys.readouterr()
    assert main(["pools"]) == 0
    assert "nothing to change" in capsys.readouterr().out
    server.update_work_pool("cpu", WorkPoolUpdate(concurrency_limit=7))
    server.pause_automation(lost.id)
    server.update_work_queue(server.read_work_queues("gpu")[0].id, priority=9)
    assert todo(server) == ["queue gpu/urgent"]
    assert main(["pools"]) == 0
    assert server.read_work_pool("cpu").concurrency_limit == 7
    assert not server.read_automations()[0].enabled
    monkeypatch.setenv("BSL_NOTIFY_URL", "http://127.0.0.1:9/secret-of-the-webhook")
    assert main(["pools"]) == 0
    assert "secret-of-the-webhook" not in capsys.readouterr().out
    assert len(server.read_automations()) == 2
    assert todo(server) == []


def test_the_doctor_says_what_a_server_lacks(server, tmp_path, monkeypatch):
    site = Site(store=str(tmp_path / "store"))
    lost = "automation bsl: runs without a heartbeat have crashed"
    monkeypatch.setenv("BSL_NOTIFY_URL", "http://127.0.0.1:9/x")
    assert main(["pools"]) == 0
    for automation in server.read_automations():
        server.delete_automation(automation.id)
    checks = {check.subject: check for check in examine_server(site, "tiny", "Prefect server")}
    assert checks["server"].verdict == "ok"
    assert f"prefect {prefect.__version__} here and there" in checks["server"].found
    found = {name: (check.verdict, check.found) for name, check in checks.items() if name != "server"}
    assert found == {
        "pools": ("note", f"{lost} (missing), automation bsl: tell of failed runs (missing)"),
        "schedule bsl-pipeline/nli weekly": ("note", "its deployment is missing"),
        "workers of gpu": ("note", "none polls it, or it is paused"),
        "workers of cpu": ("note", "none polls it, or it is paused"),
        "deployment bsl-pipeline/tiny": ("note", "the server has none"),
    }
    assert checks["workers of gpu"].remedy.startswith("`prefect worker start --pool gpu`")
    server.create_deployment(server.create_flow(do_errand), "any", work_pool_name="cpu")
    wanted = examine_server(site.model_copy(update={"runner": "pool"}), "tiny", "")
    refused = [(check.subject, check.found) for check in wanted if check.verdict == "NO"]
    assert refused == [("deployment bsl-errand/any", "no worker takes its runs from pool cpu")]
    server._client.post("/work_pools/cpu/workers/heartbeat", json={"name": "one"})
    assert {check.verdict for check in examine_server(site, "tiny", "") if check.subject == "workers of cpu"} == {"ok"}
    server.delete_work_pool("cpu")
    server.create_work_pool(WorkPoolCreate(name="cpu", type="docker"))
    for runner, verdict in (("threads", "note"), ("pool", "NO")):
        checks = {
            check.subject: check for check in examine_server(site.model_copy(update={"runner": runner}), "tiny", "")
        }
        assert (checks["pools"].verdict, checks["pools"].found[:28]) == (verdict, "pool cpu: its type is docker")
        assert {"server", "workers of gpu", "deployment bsl-pipeline/tiny"} <= set(checks)
    left = checks["deployment bsl-errand/any"]
    assert (left.verdict, left.found) == ("NO", "its pool was deleted")
    assert left.remedy == "`bsl pools`, then `prefect --no-prompt deploy --name any`"
    server.delete_work_pool("cpu")


@flow
def own_tags(site: Site) -> list[str]:
    return list(flow_run.tags)


def test_what_a_verb_starts_has_the_tag_by_which_rules_know_our_runs(server, tmp_path):
    start = Start(Site(store=str(tmp_path / "store")), None, watched=False)
    assert start.run(own_tags, []) == [TAG]


def test_a_webhook_is_told_in_json(server, tmp_path):
    told = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{listener.server_port}/{uuid4()}"
        for change in find_changes(server, webhook=address):
            if change.make is not None:
                change.make(server)
        CustomWebhookNotificationBlock.load(WEBHOOK).notify("it failed", "bsl-pipeline")
        listener.shutdown()
    assert told == ['{"text":"bsl-pipeline: it failed"}']


@pytest.mark.parametrize("option", ["gpu", "gpu=none", "tpu=1", "gpu=0"])
def test_a_limit_that_makes_no_sense_is_refused(server, option, capsys):
    assert main(["pools", "--limit", option]) == 2
    assert option in capsys.readouterr().err


def test_without_a_server_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert main(["pools"]) == 2
    assert "prefect server start" in capsys.readouterr().err


def test_deployments_take_the_pools_queues_tag_and_schedules_of_the_table():
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    pools, queues = {pool.name for pool in POOLS}, {queue.name for queue in QUEUES}
    for deployment in deployments:
        assert deployment["work_pool"]["name"] in pools
        assert deployment["work_pool"]["work_queue_name"] in queues
        assert TAG in deployment["tags"]
    scheduled = {
        (deployment["name"], schedule["slug"], schedule["cron"], schedule["timezone"])
        for deployment in deployments
        for schedule in deployment.get("schedules", [])
    }
    assert scheduled == {(each.deployment.partition("/")[2], each.slug, each.cron, each.timezone) for each in SCHEDULES}
