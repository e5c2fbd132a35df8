"""A server with a password refuses clients without it (401), serves our commands, and leaks no planted secret."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bsl.storage.artifacts.store import Store
from tests.log_lines import JSON_LINES, published
from tests.servers import ROOT, SERVER, clients_of, free_port, prepare, wait_until_healthy

AUTH = "admin:planted-password-of-the-server"
PLANTED = {
    "PREFECT_API_AUTH_STRING": AUTH,
    "AWS_SECRET_ACCESS_KEY": "planted-secret-of-the-store",
    "HF_TOKEN": "hf_plantedtokenofthehub",
    "BSL_NOTIFY_URL": "http://127.0.0.1:9/planted-address-of-the-webhook",
    "FSSPEC_FTP_PASSWORD": "planted-password-of-a-mirror",
}
REFUSED = "planted-secret-of-an-address"
ADDRESSES = {
    f"http://user:{REFUSED}@127.0.0.1:9/labels.csv": "user",
    f"https://127.0.0.1:9/labels.csv?jwt={REFUSED}": "query",
    f"tcp://127.0.0.1:9#{REFUSED}": "fragment",
}
FEW = ["--set", "evaluation.bootstrap.resamples=100", "--set", 'evaluation.sets=["embedded:stsb/test"]']


# Python and a deployment's form, as a script that prints how each address is refused.
CREATE_RUNS = """
import sys
from uuid import uuid4
from prefect.client.orchestration import get_client
from bsl.flows.adaptation import adapt
from bsl.flows.pipeline import pipeline
from prefect.exceptions import PrefectHTTPStatusError
from prefect.utilities.callables import parameter_schema

with get_client(sync_client=True) as client:
    flow_id = client.create_flow(pipeline)
    form = parameter_schema(pipeline.fn).model_dump()
    deployment = client.create_deployment(
        flow_id, f"any-{uuid4()}", parameter_openapi_schema=form, enforce_parameter_schema=True
    )
    for address in sys.argv[1:]:
        for site in ({"cluster": address}, {"mirror": address}):
            try:
                client.create_flow_run_from_deployment(
                    deployment, parameters={"recipe_name": "tiny", "site": site}
                )
            except PrefectHTTPStatusError as error:
                assert error.response.status_code == 409, error.response.status_code
                print("refused")
        for flow, given in ((adapt, {"texts": ["a"], "labels": address}), (pipeline, {"recipe_name": address})):
            try:
                flow(**given)
            except ValueError as error:
                assert "contains a password" in str(error)
                print("refused")
"""


def with_secrets() -> list[list[str]]:
    """Return commands with a secret in an address, one for each option and address."""
    return [
        words
        for address in ADDRESSES
        for words in (
            ["evaluate", "embedded:bert-mini", "--suite", f"labels:{address}", "--json"],
            ["adapt", "own.txt", "--labels", address],
            ["run", "tiny", "--cluster", address, "--set", f"encoder.model={address}"],
        )
    ]


@pytest.fixture
def server(tmp_path, new_home):
    """Start a server with a password; yield the environment of its clients."""
    port = free_port()
    own = {
        **clients_of(port, new_home(tmp_path / "home")),
        "PYTHONPATH": str(ROOT),
        "BSL_STORE": str(tmp_path / "store"),
        "NO_COLOR": "1",
        **JSON_LINES,
    }
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*SERVER, "--port", str(port)],
            env={**os.environ, **own, "PREFECT_SERVER_API_AUTH_STRING": AUTH},
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
        wait_until_healthy(own["PREFECT_API_URL"])
        yield {**os.environ, **own, **PLANTED}
        process.terminate()
        process.wait(60)


def bsl(environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bsl.flows.cli.main", *words]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=400)


@pytest.mark.slow
def test_server_password_is_required_and_no_file_contains_secrets(server, tmp_path):
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{server['PREFECT_API_URL']}/admin/version")
    prepare(server)
    calls = [bsl(server, tmp_path, *words) for words in (["run", "tiny-avg", *FEW], ["doctor", "tiny-avg"])]
    assert [call.returncode for call in calls] == [0, 0], [call.stderr for call in calls]
    store, told = Store(server["BSL_STORE"]), published(calls[0].stderr)
    assert {path: stage for path, (_, stage) in told.items()} == {
        ref.path: store.manifest(ref).provenance.stage for ref in store.refs() if ref.kind != "model"
    }
    assert {run for run, _ in told.values()} == {store.manifest(store.refs("report")[0]).provenance.run}
    for wrong, fault in ("admin:guessed", "refuses the given"), ("", "requires"):
        refused = bsl({**server, "PREFECT_API_AUTH_STRING": wrong}, tmp_path, "evaluate", "embedded:bert-mini")
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
        assert f"{fault} credentials (status 401). " in refused.stderr
    refusals = [bsl(server, tmp_path, *words) for words in with_secrets()]
    assert {call.returncode for call in refusals} == {2}, [call.stderr for call in refusals]
    script = subprocess.run(
        [sys.executable, "-c", CREATE_RUNS, *ADDRESSES],
        env=server,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert script.stdout.split() == ["refused"] * 4 * len(ADDRESSES), script.stderr
    (tmp_path / "console.log").write_text("".join(call.stdout + call.stderr for call in (*calls, *refusals, script)))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "prefect.db" for path in files)
    found = [
        (str(path.relative_to(tmp_path)), name)
        for path in files
        for name, secret in {**PLANTED, "address": REFUSED}.items()
        if secret.encode() in path.read_bytes()
    ]
    assert found == []
