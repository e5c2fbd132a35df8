"""Which Prefect server a command talks to: the one that PREFECT_API_URL names, else one of this folder's own.

A command starts its own server while it still imports; `server_process` says why that is not Prefect's own.

Nothing here imports Prefect: its settings are read once, on import, so they must stand in the environment before.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import http.client
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

TAG: Final = "bsl"  # of every run: the automations of docker/ apply to runs that have it
HOME: Final = Path(".bsl")  # of the own server's database, which all commands of this folder share
HEARTBEAT_SECONDS: Final = 30  # the least that Prefect takes; unless told so it beats every 180 s
RUN_SETTINGS: Final = {  # of every run; prefect.yaml gives them to runs on a pool
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),  # a shared server ends a run that is silent
    # A server answers 500 while its database is gone; asked again for two minutes, it may have it back.
    "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
}
_OWN_SERVER = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "DO_NOT_TRACK": "1",
}
_DATABASES: Final = ("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL")
_SECONDS_TO_ANSWER: Final = 20.0  # of a named server, asked before a run
_SECONDS_TO_START: Final = 120.0  # a laptop's first start takes over 20
_PATIENCE: Final = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
_PROGRAM: Final = Path(__file__).with_name("server_process.py")
# As Prefect runs a server for one process: without a UI, and without the services that only schedules need.
_TEMPORARY: Final = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


def use_server() -> str:
    """Settle the Prefect settings of this process; what the environment already says stays.

    Returns:
        A sentence that says which server it is.
    """
    address = named_server()
    for name, value in RUN_SETTINGS.items():
        os.environ.setdefault(name, value)
    if address:
        return f"Prefect server {address}"
    os.environ.setdefault("PREFECT_HOME", str(HOME.absolute() / "prefect"))
    # Prefect would make the last part alone, and warn where the others are missing.
    Path(os.environ["PREFECT_HOME"]).expanduser().mkdir(parents=True, exist_ok=True)
    for name, value in _OWN_SERVER.items():
        os.environ.setdefault(name, value)
    return f"embedded Prefect server, database in {os.environ['PREFECT_HOME']}"


def named_server() -> str | None:
    """The address in PREFECT_API_URL, without credentials: these go to PREFECT_API_AUTH_STRING, which sends the same.

    Prefect shows the address on the console and in its UI; it is settled before Prefect is imported.
    """
    address = os.environ.get("PREFECT_API_URL")
    parts = urlsplit(address or "")
    if not address or parts.username is None:
        return address or None
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    os.environ.setdefault("PREFECT_API_AUTH_STRING", credentials)
    os.environ["PREFECT_API_URL"] = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return os.environ["PREFECT_API_URL"]


def start_server() -> EmbeddedServer | None:
    """Start one unless PREFECT_API_URL names one; call it before Prefect is imported, which reads its settings then."""
    return None if os.environ.get("PREFECT_API_URL") else EmbeddedServer()


def check_server(address: str) -> str:
    """Ask a server that a person named once whether it answers and takes our credentials; Prefect would try for long.

    Returns:
        Its version.

    Raises:
        OSError: it does not answer, or wants credentials.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError
    from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    once = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: _SECONDS_TO_ANSWER}
    with temporary_settings(once), get_client(sync_client=True) as client:
        fault = client.api_healthcheck()
        try:
            version = client.api_version() if fault is None else ""  # the health check asks for no credentials
        except Exception as error:  # whatever the client raises
            fault = error
    if fault is None:
        return version
    if isinstance(fault, PrefectHTTPStatusError) and fault.response.status_code in (401, 403):
        raise OSError(
            f"Prefect server {address} wants credentials ({fault.response.status_code}); set "
            "PREFECT_API_AUTH_STRING=user:password"
        ) from fault
    line = (str(fault) or type(fault).__name__).splitlines()[0]
    raise OSError(
        f"Prefect server {address} does not answer ({line}); start it, correct or unset PREFECT_API_URL"
    ) from fault


def is_alone(*, inherited: bool = False) -> bool:
    """Be present in the folder's own database; whether no other command is.

    A database that a person named may have other users: nobody is alone there.
    """
    folder = Path(os.environ.get("PREFECT_HOME", ""))
    if folder != HOME.absolute() / "prefect" or any(map(os.environ.get, _DATABASES)):
        return False
    return hold(folder, inherited=inherited)


class EmbeddedServer:
    """A server process to which this process's Prefect client talks, until this process ends.

    Attributes:
        alone: when no other command used the folder's own database; None if one did.
    """

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._port = port
        self.alone = datetime.now(UTC) if is_alone() else None
        self._api = f"http://127.0.0.1:{port}/api"
        self._process = subprocess.Popen(
            # -P: or the modules beside the program would hide others of their name
            [sys.executable, "-P", str(_PROGRAM), str(port)],
            env={**os.environ, **_TEMPORARY},
            stdin=subprocess.PIPE,  # which closes with this process, whatever ends it
            start_new_session=True,  # Ctrl-C is for the command, which then tells the server how its run ended
        )
        atexit.register(self.stop)
        os.environ["PREFECT_API_URL"] = self._api
        os.environ.setdefault("PREFECT_UI_URL", "")  # else Prefect prints the address of a page that is not served

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            OSError: it ended, or does not answer in time.
        """
        limit = time.monotonic() + float(os.environ.get(_PATIENCE, _SECONDS_TO_START))
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise OSError(
                    f"the embedded Prefect server did not start at {self._api} (exit code {self._process.returncode}); "
                    "see its message above, or run `bsl ui` and set PREFECT_API_URL"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)  # which asks no proxy
        try:
            connection.request("GET", "/api/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def hold(folder: Path, *, inherited: bool = False) -> bool:
    """Hold the shared lock until this process ends.

    Args:
        folder: the folder of the database.
        inherited: whether a program that replaces this process (`exec`) keeps the lock.

    Returns:
        Whether no other process holds it; False on a file system without locks.
    """
    file = os.open(folder / "commands.lock", os.O_RDWR | os.O_CREAT, 0o644)  # never closed
    os.set_inheritable(file, inherited)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH)
    return alone
