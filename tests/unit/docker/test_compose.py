"""Services in docker/ keep secrets and ports closed, and their automations are valid; no image is built here."""

import re
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from prefect.events.schemas.automations import AutomationCore

from bsl.flows.prefect_server.server import TAG

DOCKER = Path(__file__).parents[3] / "docker"
SERVICES = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
SECRETS = re.findall(r"^(\w+)=", (DOCKER / "env.example").read_text(), re.MULTILINE)


def test_secrets_come_from_the_env_file_without_defaults():
    text = (DOCKER / "compose.yaml").read_text()
    used = set(re.findall(r"\$\{(\w+)", text))
    assert used == set(SECRETS)
    assert set(re.findall(r"\$\{(\w+):\?\}", text)) == used - {"BSL_NOTIFY_URL", "BSL_DATA_MIRROR", "HF_TOKEN"}
    values = (DOCKER / "env.example").read_text().splitlines()
    assert [line for line in values if re.search("(PASSWORD|AUTH|TOKEN)=", line)] == [
        f"{name}=" for name in SECRETS if name.endswith(("PASSWORD", "AUTH", "TOKEN"))
    ]


def test_only_the_server_publishes_a_port_on_loopback():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"server": ["127.0.0.1:4200:4200"]}


def test_images_run_as_non_root_without_secrets():
    stages = (DOCKER / "Dockerfile").read_text().split("\nFROM ")[1:]
    assert all("\nUSER 10001\n" in stage for stage in stages[1:])
    assert not re.search(r"^(ENV|ARG).*(PASSWORD|SECRET|TOKEN)", "\n".join(stages), re.MULTILINE)


@pytest.mark.parametrize("name", ["crashed", "notify"])
def test_automations_are_valid_and_match_only_tagged_runs(name):
    rule = yaml.safe_load((DOCKER / f"{name}.yaml").read_text().replace("BLOCK_ID", str(uuid4())))
    AutomationCore.model_validate(rule)
    assert rule["trigger"]["match_related"]["prefect.resource.id"] == f"prefect.tag.{TAG}"
    assert f"inspect {rule['name']} " in (DOCKER / "server-setup.sh").read_text()
