"""Which server a command uses: the requests before a run, and the parts of its address that are shown."""

import base64
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_CLIENT_RETRY_EXTRA_CODES,
    temporary_settings,
)

from flows.cli.main import main
from flows.prefect_server.server import check_server, named_server, use_server

AUTH = "admin:of-the-server"


class Guarded(BaseHTTPRequestHandler):
    """Prefect's server with a password: /health answers everyone, other paths only clients with the password."""

    def do_GET(self):
        known = self.headers["Authorization"] == f"Basic {base64.b64encode(AUTH.encode()).decode()}"
        self.send_response(200 if known or self.path.endswith("/health") else 401)
        self.end_headers()
        self.wfile.write(b'"3.8.8"')

    def log_message(self, *_):
        pass


class Broken(BaseHTTPRequestHandler):
    """Server that always answers 500, as one whose database is gone."""

    def do_GET(self):
        self.server.asked += 1
        self.send_response(500)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_check_server_does_not_retry_a_failing_server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        server.asked = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/api"
        patient = {PREFECT_API_URL: address, PREFECT_CLIENT_RETRY_EXTRA_CODES: "500", PREFECT_CLIENT_MAX_RETRIES: 1}
        with temporary_settings(patient), pytest.raises(OSError, match="does not answer"):
            check_server(address)
        server.shutdown()
    assert server.asked == 1


@pytest.fixture
def guarded(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/api"
        monkeypatch.setenv("PREFECT_API_URL", address)
        with temporary_settings({PREFECT_API_URL: address}):
            yield address
        server.shutdown()


@pytest.mark.parametrize("verb", [["doctor", "tiny-avg"], ["evaluate", "embedded:bert-mini"]])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "requires credentials (status 401). Set PREFECT_API_AUTH_STRING=user:password"),
        ("admin:guessed", "refuses the given credentials (status 401). Correct PREFECT_API_AUTH_STRING=user:password"),
    ],
)
def test_missing_and_wrong_server_credentials_print_an_error_with_the_fix(
    guarded, verb, given, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with temporary_settings({PREFECT_API_AUTH_STRING: given}):
        assert main(verb) == 1
    assert f"Prefect server {guarded} {told}" in " ".join("".join(capsys.readouterr()).replace("│", " ").split())


def test_check_server_with_password_returns_the_version(guarded):
    with temporary_settings({PREFECT_API_AUTH_STRING: AUTH}):
        assert check_server(guarded) == "3.8.8"


@pytest.mark.parametrize(("given", "sent"), [("u:s%2Fk@", "u:s/k"), ("token@", "token:")])
def test_url_credentials_are_sent_but_removed_from_shown_address(given, sent, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", f"http://{given}host:4200/api")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "")
    monkeypatch.delenv("PREFECT_API_AUTH_STRING")
    assert use_server() == "Prefect server http://host:4200/api"
    assert named_server() == "http://host:4200/api"
    assert os.environ["PREFECT_API_AUTH_STRING"] == sent
