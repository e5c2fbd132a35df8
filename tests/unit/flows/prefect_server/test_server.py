"""Which server a command uses, the parts of its address that are shown, and why it cannot start."""

import asyncio
import base64
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_CLIENT_RETRY_EXTRA_CODES,
    temporary_settings,
)

from bsl.flows.cli.main import main
from bsl.flows.prefect_server import server
from bsl.flows.prefect_server.server import (
    check_database_folder,
    check_server,
    listen,
    named_server,
    never_proxy_loopback,
    profile_server,
    use_server,
)
from bsl.flows.prefect_server.server_process import LoopbackOnly
from bsl.storage.errors import StoreWriteError
from tests.confined import SUPPORTED, confined
from tests.hostile import as_nobody

AUTH = "admin:of-the-server"


class Prefect(BaseHTTPRequestHandler):
    """Prefect's server with a password: /health answers everyone, other paths only clients with the password."""

    def do_GET(self):
        self.server.asked += 1
        known = self.headers["Authorization"] == f"Basic {base64.b64encode(AUTH.encode()).decode()}"
        answer = 200 if known or self.path.endswith("/health") else 401
        self.send_response(500 if self.server.is_broken else answer)
        self.end_headers()
        self.wfile.write(b'"3.9.1"')

    def log_message(self, *_):
        pass


@pytest.fixture
def prefect(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Prefect) as running:
        running.asked, running.is_broken = 0, False
        threading.Thread(target=running.serve_forever, daemon=True).start()
        running.address = f"http://127.0.0.1:{running.server_port}/api"
        monkeypatch.setenv("PREFECT_API_URL", running.address)
        with temporary_settings({PREFECT_API_URL: running.address}):
            yield running
        running.shutdown()


def test_check_server_does_not_retry_a_failing_server(prefect):
    prefect.is_broken = True  # as one whose database is gone
    patient = {PREFECT_CLIENT_RETRY_EXTRA_CODES: "500", PREFECT_CLIENT_MAX_RETRIES: 1}
    with temporary_settings(patient), pytest.raises(OSError, match="does not answer"):
        check_server(prefect.address)
    assert prefect.asked == 1


@pytest.mark.parametrize("verb", [["doctor", "tiny-avg"], ["evaluate", "embedded:bert-mini"]])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "requires credentials (status 401). Set PREFECT_API_AUTH_STRING=user:password"),
        ("admin:guessed", "refuses the given credentials (status 401). Correct PREFECT_API_AUTH_STRING=user:password"),
    ],
)
def test_missing_and_wrong_server_credentials_print_an_error_with_the_fix(
    prefect, verb, given, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with temporary_settings({PREFECT_API_AUTH_STRING: given}):
        assert main(verb) == 1
    assert f"Prefect server {prefect.address} {told}" in " ".join(
        "".join(capsys.readouterr()).replace("│", " ").split()
    )


def test_check_server_with_password_returns_the_version(prefect):
    with temporary_settings({PREFECT_API_AUTH_STRING: AUTH}):
        assert check_server(prefect.address) == "3.9.1"


@pytest.mark.parametrize(("given", "sent"), [("u:s%2Fk@", "u:s/k"), ("token@", "token:")])
def test_url_credentials_are_sent_but_removed_from_shown_address(given, sent, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", f"http://{given}host:4200/api")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "")
    monkeypatch.delenv("PREFECT_API_AUTH_STRING")
    assert use_server() == "Prefect server http://host:4200/api"
    assert named_server() == "http://host:4200/api"
    assert os.environ["PREFECT_API_AUTH_STRING"] == sent


def test_listening_socket_is_passed_open_so_no_other_program_takes_the_port():
    with listen(0) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            listen(port)
        with socket.create_connection(("127.0.0.1", port), timeout=5):  # waits in the socket for its server
            pass
    listen(port).close()


def test_loopback_joins_the_exceptions_of_a_proxy(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    never_proxy_loopback()
    assert "NO_PROXY" not in os.environ
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "intranet.example, 127.0.0.1")
    monkeypatch.setenv("no_proxy", "")
    never_proxy_loopback()
    assert os.environ["NO_PROXY"] == os.environ["no_proxy"] == "intranet.example,127.0.0.1,localhost,::1"


def test_exceptions_that_httpx_cannot_parse_are_left_out(monkeypatch, caplog):
    """With one of them, every HTTP client raises InvalidURL."""
    monkeypatch.setenv("HTTP_PROXY", "proxy.example:3128")
    good = ["*.corp", "10.0.0.0/8", "::1", "host:8080", ".intranet", "http://a.example"]
    for bad in ("::1/128", "fe80::/10", "[::1]", "host:port", "[fe80::1]:80"):
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, ", ".join([*good, bad]))
        with pytest.raises(httpx.InvalidURL):
            httpx.Client()
        never_proxy_loopback()
        httpx.Client().close()
        assert os.environ["NO_PROXY"].split(",") == [*good, "127.0.0.1", "localhost"]
        assert f"NO_PROXY: {bad} is left out" in caplog.text


@pytest.mark.parametrize(
    ("variable", "proxy", "error", "told"),
    [
        ("HTTPS_PROXY", "http://u:SECRET@proxy.example:port", ValueError, "HTTPS_PROXY is .*expected http://HOST:PORT"),
        ("HTTPS_PROXY", "ftp://proxy.example:3128", ValueError, "HTTPS_PROXY is .*expected http://HOST:PORT"),
        # httpx makes a client for each proxy, also where NO_PROXY excepts every server
        (
            "ALL_PROXY",
            "socks5://u:SECRET@127.0.0.1:9",
            ImportError,
            r"socks5://….*`pip install 'httpx\[socks\]'`",
        ),
    ],
)
def test_proxy_that_httpx_cannot_use_is_named_without_its_password(variable, proxy, error, told, monkeypatch, tmp_path):
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv(variable, proxy)
    with pytest.raises(error, match=told) as raised:
        server.reserve_server()
    assert "SECRET" not in str(raised.value)


def test_unreachable_server_error_names_the_proxy_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://user:SECRET@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    address = "http://prefect.example/api"
    with temporary_settings({PREFECT_API_URL: address}), pytest.raises(OSError, match="does not answer") as raised:
        check_server(address)
    assert "through the proxy http://…@127.0.0.1:9" in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_server_of_the_active_profile_is_named(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(os, "environ", {name: value for name, value in os.environ.items() if "PREFECT" not in name})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert profile_server() is None
    (tmp_path / ".prefect").mkdir()
    (tmp_path / ".prefect" / "profiles.toml").write_text(
        'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "http://host:4200/api"\n'
    )
    use_server()
    assert "set PREFECT_API_URL=http://host:4200/api" in caplog.text


COMMAND = ["evaluate", "embedded:mini-sentence", "--suite", "embedded:stsb/test"]


def test_database_folder_that_cannot_be_written_is_an_error_with_its_cause(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    check_database_folder()
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o555)
    with as_nobody(), pytest.raises(StoreWriteError, match=r"\(PREFECT_HOME\): writing is not permitted\. Choose"):
        check_database_folder()


def test_size_limit_below_that_of_a_database_is_an_error_with_its_cause(tmp_path):
    check = "from bsl.flows.prefect_server.server import check_database_folder; check_database_folder()"
    limited = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", sys.executable, "-c", check]
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
    done = subprocess.run(limited, env=environment, capture_output=True, text=True, check=False)
    assert "(PREFECT_HOME): a file would exceed `ulimit -f`" in done.stderr


@pytest.mark.skipif(not SUPPORTED, reason="needs user namespaces")
def test_command_whose_database_is_on_a_full_disk_names_disk_and_variable(tmp_path):
    command = confined([sys.executable, "-m", "bsl.flows.cli.main", *COMMAND], full=tmp_path)
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"bsl: cannot write to {tmp_path} (PREFECT_HOME): the disk is full. Free space or choose another folder.\n"
    )


def test_start_that_fails_is_printed_in_one_line(capsys):
    trace = "Traceback (most recent call last):\n  x\nsqlite3.OperationalError: disk I/O error\n[SQL: …]\n"
    sent = []

    async def app(_, __, send):
        await send({"type": "lifespan.startup.failed", "message": trace})

    async def tell(message=None):
        sent.append(message)

    asyncio.run(LoopbackOnly(app)({"type": "lifespan"}, tell, tell))
    assert len(sent) == 1
    assert capsys.readouterr().err == "Prefect server: sqlite3.OperationalError: disk I/O error\n"


@pytest.mark.parametrize(("kind", "refusal"), [("http", "http.response.start"), ("websocket", "websocket.close")])
@pytest.mark.parametrize("origin", ["http://127.0.0.1:4200", "http://localhost:3000", "http://evil.example"])
def test_requests_and_events_are_for_own_pages_alone(kind, refusal, origin):
    sent = []

    async def app(*_):
        sent.append({"type": "answer of Prefect"})

    async def tell(message=None):
        sent.extend([message] if message else [])

    headers = [(b"host", b"localhost:4200"), (b"origin", origin.encode())]
    asyncio.run(LoopbackOnly(app)({"type": kind, "headers": headers}, tell, tell))
    assert sent[0]["type"] == ("answer of Prefect" if origin.endswith("4200") else refusal)
