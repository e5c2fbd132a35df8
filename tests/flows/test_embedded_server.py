"""A command's own Prefect server: answers while the command lives, and is gone with it."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from flows.server import start_server

COMMAND = """
import os, urllib.request
from flows.server import start_server
from flows.server import use_server
use_server()
server = start_server()
server.wait()
url = os.environ["PREFECT_API_URL"]
print(url, urllib.request.urlopen(url + "/admin/version").read().decode())
raise SystemExit(3)
"""


def test_it_answers_and_ends_with_the_command(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    run = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (3, "")
    url, version = run.stdout.split()
    assert version.startswith('"3.')
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(url + "/health")


def test_a_server_that_cannot_start_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_UI_URL", "")
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", f"sqlite+aiosqlite:///{tmp_path}/no/such/folder.db")
    server = start_server()
    monkeypatch.delenv("PREFECT_API_URL")  # which it set for this process
    with pytest.raises(OSError, match="did not start"):
        server.wait()


def test_a_server_that_is_named_is_used(monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert start_server() is None
