"""docker/: what is pinned, closed and watched; images are built by hand, for CI has no daemon."""

import re
from pathlib import Path

import pytest
import yaml

from flows.pools import POOLS

DOCKER = Path(__file__).parents[3] / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
SECRETS = re.findall(r"^(\w+)=", (DOCKER / "env.example").read_text(), re.MULTILINE)


def words(service: dict) -> str:
    command = service.get("command", "")
    return command if isinstance(command, str) else " ".join(command)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_pinned_and_watched(name):
    service = SERVICES[name]
    tag = service["image"].rpartition(":")[2]
    assert tag in {"cpu", "cuda"} or re.search(r"\d+\.\d+\.?|RELEASE\.", tag)
    assert "healthcheck" in service
    assert name == "setup" or "disable" not in service["healthcheck"]


def test_every_secret_comes_from_the_file_and_none_has_a_default():
    text = (DOCKER / "compose.yaml").read_text()
    used = set(re.findall(r"\$\{(\w+)", text))
    assert used == set(SECRETS)
    assert set(re.findall(r"\$\{(\w+):\?\}", text)) == used - {"BSL_NOTIFY_URL"}
    values = (DOCKER / "env.example").read_text().splitlines()
    assert [line for line in values if "PASSWORD=" in line or "AUTH=" in line] == [
        f"{name}=" for name in SECRETS if "PASSWORD" in name or "AUTH" in name
    ]


def test_only_the_server_is_open_and_on_loopback_alone():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"server": ["127.0.0.1:4200:4200"]}


def test_workers_take_the_pools_of_the_table_and_a_gpu_one_process():
    started = {name: re.search(r"--pool (\w+)", words(service)) for name, service in SERVICES.items()}
    assert {found[1] for found in started.values() if found} == {pool.name for pool in POOLS}
    assert "--limit 1" in words(SERVICES["worker-gpu"])
    dockerfile = (DOCKER / "Dockerfile").read_text()
    assert '"--pool", "gpu", "--type", "process", "--limit", "1"' in dockerfile


def test_the_image_runs_as_nobody_s_root_and_answers():
    stages = (DOCKER / "Dockerfile").read_text().split("\nFROM ")[1:]
    assert [stage.split("\n")[0].rpartition(" ")[2] for stage in stages] == ["base", "cpu", "cuda"]
    assert all("\nUSER 10001\n" in stage for stage in stages[1:])
    assert "HEALTHCHECK" in stages[0]
    assert not re.search(r"^(ENV|ARG).*(PASSWORD|SECRET|TOKEN)", "\n".join(stages), re.MULTILINE)


def test_deployments_that_setup_makes_are_declared():
    declared = yaml.safe_load((DOCKER.parent / "prefect.yaml").read_text())["deployments"]
    assert set(re.findall(r"--name (\S+?)[\"\s]", words(SERVICES["setup"]) + " ")) <= {d["name"] for d in declared}
