"""A server with a password refuses clients without it (401), serves our commands, and leaks no planted secret."""

import os
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from bsl.storage.artifacts.store import Store
from tests.log_lines import JSON_LINES, published
from tests.servers import ROOT, SERVER, clients_of, free_port, prepare

AUTH = "admin:planted-password-of-the-server"
PLANTED = {
    "PREFECT_API_AUTH_STRING": AUTH,
    "AWS_SECRET_ACCESS_KEY": "planted-secret-of-the-store",
    "HF_TOKEN": "hf_plantedtokenofthehub",
    "BSL_NOTIFY_URL": "http://127.0.0.1:9/planted-address-of-the-webhook",
    "FSSPEC_FTP_PASSWORD": "planted-password-of-a-mirror",
}
ADDRESS = "planted-secret-of-an-address"
FEW = ["--set", "evaluation.bootstrap.resamples=100", "--set", 'evaluation.sets=["embedded:stsb/test"]']


@pytest.fixture
def server(tmp_path, new_home):
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
        yield {**os.environ, **own, **PLANTED}
        process.terminate()
        process.wait(60)


def bsl(environment, folder, *words):
    command = [sys.executable, "-m", "bsl.flows.cli.main", *words]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=400)


@pytest.mark.slow
def test_server_password_is_required_and_no_file_contains_secrets(server, tmp_path):
    prepare(server)  # it waits until the server answers
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{server['PREFECT_API_URL']}/admin/version")
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
    calls.append(bsl(server, tmp_path, "run", "tiny", "--cluster", f"tcp://127.0.0.1:9#{ADDRESS}"))
    assert calls[-1].returncode == 2, calls[-1].stderr
    (tmp_path / "console.log").write_text("".join(call.stdout + call.stderr for call in calls))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "prefect.db" for path in files)
    found = [
        (str(path.relative_to(tmp_path)), name)
        for path in files
        for name, secret in {**PLANTED, "address": ADDRESS}.items()
        if secret.encode() in path.read_bytes()
    ]
    assert found == []
