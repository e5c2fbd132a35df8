"""Services in docker/ are pinned, closed and supervised; images are not built, because CI has no Docker daemon."""

import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from prefect.events.schemas.automations import AutomationCore

from bsl.flows.prefect_server.server import TAG
from tests.every import every

DOCKER = Path(__file__).parents[3] / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
SECRETS = re.findall(r"^(\w+)=", (DOCKER / "env.example").read_text(), re.MULTILINE)


def words(service: dict) -> str:
    command = service.get("command", "")
    return command if isinstance(command, str) else " ".join(command)


@every(SERVICES)
def test_every_service_has_pinned_image_and_healthcheck(name):
    service = SERVICES[name]
    tag = service["image"].rpartition(":")[2]
    assert tag in {"cpu", "cuda"} or re.search(r"\d+\.\d+\.?|RELEASE\.", tag)
    assert "healthcheck" in service
    assert name == "setup" or "disable" not in service["healthcheck"]


def test_secrets_come_from_the_env_file_without_defaults():
    text = (DOCKER / "compose.yaml").read_text()
    used = set(re.findall(r"\$\{(\w+)", text))
    assert used == set(SECRETS)
    assert set(re.findall(r"\$\{(\w+):\?\}", text)) == used - {"BSL_NOTIFY_URL"}
    values = (DOCKER / "env.example").read_text().splitlines()
    assert [line for line in values if "PASSWORD=" in line or "AUTH=" in line] == [
        f"{name}=" for name in SECRETS if "PASSWORD" in name or "AUTH" in name
    ]


def test_only_the_server_publishes_a_port_on_loopback():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"server": ["127.0.0.1:4200:4200"]}


def test_workers_use_the_gpu_pool_with_one_process():
    started = {name: re.search(r"--pool (\w+)", words(service)) for name, service in SERVICES.items()}
    assert {found[1] for found in started.values() if found} == {"gpu"}
    assert "--limit 1" in words(SERVICES["worker-gpu"])
    dockerfile = (DOCKER / "Dockerfile").read_text()
    assert '"--pool", "gpu", "--type", "process", "--limit", "1"' in dockerfile


def test_image_runs_as_non_root_with_healthcheck():
    stages = (DOCKER / "Dockerfile").read_text().split("\nFROM ")[1:]
    assert [stage.split("\n")[0].rpartition(" ")[2] for stage in stages] == ["base", "cpu", "cuda"]
    assert all("\nUSER 10001\n" in stage for stage in stages[1:])
    assert "HEALTHCHECK" in stages[0]
    assert not re.search(r"^(ENV|ARG).*(PASSWORD|SECRET|TOKEN)", "\n".join(stages), re.MULTILINE)


def test_setup_service_runs_the_server_setup_script():
    assert "docker/server-setup.sh" in words(SERVICES["setup"])
    assert os.access(DOCKER / "server-setup.sh", os.X_OK)


@pytest.mark.parametrize("name", ["crashed", "notify"])
def test_automations_are_valid_and_match_only_tagged_runs(name):
    rule = yaml.safe_load((DOCKER / f"{name}.yaml").read_text().replace("BLOCK_ID", str(uuid4())))
    AutomationCore.model_validate(rule)
    assert rule["trigger"]["match_related"]["prefect.resource.id"] == f"prefect.tag.{TAG}"
    assert f"inspect {rule['name']} " in (DOCKER / "server-setup.sh").read_text()


def test_gpu_worker_stores_caches_on_a_named_volume():
    (mount,) = SERVICES["worker-gpu"]["volumes"]
    volume, _, folder = mount.partition(":")
    assert volume in COMPOSE["volumes"]
    image = (DOCKER / "Dockerfile").read_text()
    assert all(re.search(rf"\b{name}={folder}/", image) for name in ("BSL_CACHE", "HF_HOME", "BSL_STORE"))


def test_server_setup_waits_until_the_server_answers(tmp_path):
    """`prefect server start --background` returns before the server answers."""
    asked = []

    class Starting(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(500 if len(asked) == 1 else 200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Starting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "prefect").symlink_to("/bin/true")
    own = {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}", "PREFECT_HOME": str(tmp_path)}
    url = f"http://127.0.0.1:{server.server_port}/api"
    subprocess.run([DOCKER / "server-setup.sh"], env={**os.environ, **own, "PREFECT_API_URL": url}, check=True)
    server.shutdown()
    server.server_close()
    assert asked == ["/api/health", "/api/health"]
