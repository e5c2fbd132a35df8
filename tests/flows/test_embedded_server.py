"""A command's own Prefect server answers while the command runs, and ends with it."""

import http.client
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from importlib.metadata import version
from urllib.parse import urlsplit

import pytest
import yaml
from prefect.settings.models.root import Settings

from bsl.flows.prefect_server.server import HEARTBEAT_SECONDS, RUN_SETTINGS, reserve_server, use_server
from bsl.flows.prefect_server.server_process import migration_lock
from tests.servers import ROOT, is_alive
from tests.tiny_encoder import write_tiny

START = """
import os, urllib.request
from bsl.flows.prefect_server.server import reserve_server, use_server
use_server()
server = reserve_server()
server.start()
server.wait()
url = os.environ["PREFECT_API_URL"]
"""
COMMAND = f"""{START}
print(url, urllib.request.urlopen(url + "/admin/version").read().decode())
raise SystemExit(3)
"""
OTHERS = (  # headers of requests to another host name, and of pages of others
    {"Origin": "http://localhost:3000"},  # another program of this machine
    {"Origin": "http://127.0.0.1"},
    {"Host": "evil.example:{port}"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://evil.example", "Content-Type": "text/plain"},
    {"Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"},
)
METHODS = ("GET", "POST", "OPTIONS")
OWN = ({}, {"Host": "localhost:{port}", "Origin": "http://127.0.0.1:{port}"})


@pytest.fixture
def home(tmp_path, monkeypatch, new_home):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(new_home(tmp_path / "home")))
    return tmp_path / "home"


CACHED = """
import sys

def hear(event, arguments):
    if event == "subprocess.Popen" and any("server_process" in str(word) for word in arguments[1]):
        print("a server starts", flush=True)

sys.addaudithook(hear)
from bsl.flows.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_run_that_makes_nothing_starts_no_server(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    call = ["evaluate", str(write_tiny(tmp_path / "tiny")), "--max-length", "24", "--suite", "embedded:stsb/dev"]
    command = [sys.executable, "-c", CACHED, *call, "--device", "cpu", "--store", str(tmp_path / "store")]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert "a server starts" in first
    assert "a server starts" not in second
    assert "all 3 stages are cached" in second
    assert second.splitlines()[-1] == first.splitlines()[-1]  # the page


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 2])  # interrupted while it starts, and while it serves
def test_ui_ends_quietly_on_ctrl_c(home, lines):
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    url, command = f"http://127.0.0.1:{port}", [sys.executable, "-m", "bsl.flows.cli.main", "ui", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as ui:
        printed = [ui.stdout.readline() for _ in range(lines)]
        if lines == 2:  # the address is printed when the server listens
            assert printed[1] == f"runs and artifacts: {url}   (stop with Ctrl-C)\n"
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as client:
                client.request("GET", "/api/health")
                assert client.getresponse().status == 200
        ui.send_signal(signal.SIGINT)
        assert (ui.stdout.read(), ui.wait(timeout=60)) == ("", 130)


@pytest.mark.slow
def test_ten_concurrent_commands_create_the_same_database(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "new"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    commands = [subprocess.Popen([sys.executable, "-c", COMMAND], **pipes) for _ in range(10)]
    ended = [(*command.communicate(timeout=300), command.returncode) for command in commands]
    assert [(code, errors) for _, errors, code in ended] == [(3, "")] * 10
    assert (tmp_path / "new" / "prefect.db").stat().st_mode & 0o077 == 0


@pytest.mark.timeout(60)
def test_migration_lock_is_shared_once_the_database_is_migrated(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with migration_lock() as note_migrated:
        (tmp_path / "prefect.db").touch()
        note_migrated()
    with migration_lock(), migration_lock():  # would block for ever if the first lock were still exclusive
        assert (tmp_path / "server-start.lock").read_text() == version("prefect")


@pytest.mark.parametrize("address", ["", "http://127.0.0.1:9/api"])
def test_commands_heartbeat_is_shorter_than_the_crash_timeout_and_the_database_has_a_folder(
    tmp_path, monkeypatch, address
):
    kept = {name: value for name, value in os.environ.items() if name not in RUN_SETTINGS and "PREFECT" not in name}
    monkeypatch.setattr(os, "environ", {**kept, "PREFECT_API_URL": address})
    monkeypatch.chdir(tmp_path)
    use_server()
    if address:
        assert reserve_server() is None
    else:
        assert (tmp_path / ".bsl" / "prefect").is_dir()  # without it, the first command starts with a warning
    assert Settings().flows.heartbeat_frequency == HEARTBEAT_SECONDS
    crashed = yaml.safe_load((ROOT / "docker" / "crashed.yaml").read_text())
    assert crashed["trigger"]["within"] > 2 * HEARTBEAT_SECONDS


# Short sleeps: Python handles a signal that comes just before a system call only after that call returns.
RUNNING = f"""{START}
import signal, time
from prefect import flow, task
from bsl.flows.prefect_server.crashed_runs import cancelled_when_stopped

@task
def work():
    print(os.environ["PREFECT_API_URL"], flush=True)
    for _ in range(3000):
        time.sleep(0.1)

@flow
def long():
    work()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job inherits ignored
    cancelled_when_stopped(long)()
"""


SLOW = [
    pytest.param("SIGTERM", "CANCELLED", marks=pytest.mark.slow),
    pytest.param("SIGKILL", "RUNNING", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "state"), [("SIGINT", "CANCELLED"), *SLOW])
def test_server_answers_own_pages_alone_until_a_signal_ends_command_and_run(tmp_path, home, monkeypatch, name, state):
    """The proxy would answer every request with an error. SIGINT goes to the process group, as a terminal sends it."""
    for variable in ("HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    (tmp_path / "command.py").write_text(RUNNING)
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, str(tmp_path / "command.py")],
            stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            port = urlsplit(run.stdout.readline()).port
            assert [answer(port, headers) for headers in OWN] == [(200, None), (200, "*")]
            assert {answer(port, headers, method) for headers in OTHERS for method in METHODS} == {(403, None)}
            number = getattr(signal, name)
            os.killpg(run.pid, number) if name == "SIGINT" else os.kill(run.pid, number)
            assert run.wait(timeout=180) == -number
        finally:
            run.kill()
            run.communicate()
    assert refuses(port, within=0.5 if name == "SIGINT" else 60)
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) < 100
    assert any(line.startswith("bsl: terminated. Finished stages") for line in lines) == (name == "SIGTERM")
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        assert database.execute("SELECT state_type FROM flow_run").fetchall() == [(state,)]


def answer(port, headers, method="GET"):
    """Return status and Access-Control-Allow-Origin of the server's answer."""
    path = "/api/admin/version" if method == "GET" else "/api/flows/filter"
    sent = {name: value.replace("{port}", str(port)) for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path, b"{}", sent)
        received = connection.getresponse()
        return received.status, received.getheader("access-control-allow-origin")


KILLED = f"""{START}
os.kill(server._process.pid, 9)
print(urllib.request.urlopen(url + "/health", timeout=180).read().decode())
print(server._process.pid)
"""


def test_killed_server_is_replaced_and_answers_at_the_same_address(home):
    """Regression: the system killed the server for want of memory, and the run failed after minutes of retries."""
    run = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    answered, process = run.stdout.split()
    assert answered == "true"
    assert run.stderr.count("ended (exit code -9) and is started again") == 1
    assert run.stderr.count("started again") == 1  # not after the end of the command
    assert not is_alive(int(process))


DYING = """
import os, signal
from bsl.flows.prefect_server.server import reserve_server
server = reserve_server()
server.start()
print(server._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_command_killed_during_server_start_leaves_no_server(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    run = subprocess.run([sys.executable, "-c", DYING], capture_output=True, text=True, timeout=180, check=False)
    end = time.monotonic() + 30
    while is_alive(int(run.stdout)):
        assert time.monotonic() < end, "the server is still there"
        time.sleep(0.1)


def refuses(port, within):
    limit = time.monotonic() + within
    while time.monotonic() < limit:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return True
        time.sleep(0.1)
    return False
