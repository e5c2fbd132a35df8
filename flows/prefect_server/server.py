"""The Prefect server of a command: PREFECT_API_URL, else an embedded server with a database in this folder.

A command starts the embedded server while it imports modules; `server_process` explains why Prefect's ephemeral server
is not used. This module does not import Prefect at the top: Prefect reads its settings on import, so the environment
must be set first.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import http.client
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from datetime import UTC, datetime
from importlib.util import find_spec
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from bsl.storage.filesystem.os_errors import writing
from bsl.storage.filesystem.secrets import shown

logger = logging.getLogger(__name__)

TAG: Final = "bsl"  # tag of every run; the automations of docker/ apply to runs with it
HOME: Final = Path(".bsl")  # folder of the embedded server's database, shared by all commands in this folder
HEARTBEAT_SECONDS: Final = 30  # Prefect's minimum; its default is 180 s
RUN_SETTINGS: Final = {  # for every run of a command; prefect.yaml sets them for runs on a pool
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),  # a shared server ends runs without heartbeats
    # A server answers 500 while its database is down; the client retries for two minutes.
    "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
}
_OWN_SERVER = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "DO_NOT_TRACK": "1",
}
_DATABASES: Final = ("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL")
_SECONDS_TO_ANSWER: Final = 20.0  # of a named server, checked before a run
_SECONDS_TO_START: Final = 120.0  # the first start on a laptop takes more than 20 s
_REPLACEMENTS: Final = 3  # of killed servers
_DATABASE_BYTES: Final = 4 << 20  # a new database and its journal
_START_TIMEOUT: Final = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_PROGRAM: Final = Path(__file__).with_name("server_process.py")
# Like Prefect's ephemeral server: no UI, and no services that only schedules need.
_TEMPORARY: Final = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}


def use_server() -> str:
    """Set this process's Prefect settings in the environment, unless already set; return the server's description.

    Raises:
        StoreWriteError: The folder of the embedded server's database cannot be created.
    """
    never_proxy_loopback()
    address = named_server()
    for name, value in RUN_SETTINGS.items():
        os.environ.setdefault(name, value)
    if address:
        return f"Prefect server {address}"
    if "PREFECT_HOME" not in os.environ and (ignored := profile_server()):
        logger.warning(
            "the active Prefect profile names the server %s, which this command does not use. To use it, set "
            "PREFECT_API_URL=%s",
            *(shown(ignored),) * 2,
        )
    os.environ.setdefault("PREFECT_HOME", str(HOME.absolute() / "prefect"))
    # Prefect creates only the last folder of the path, and warns if its parents are missing.
    home = Path(os.environ["PREFECT_HOME"]).expanduser()
    with writing(f"{home} (PREFECT_HOME)"):
        home.mkdir(parents=True, exist_ok=True)
    for name, value in _OWN_SERVER.items():
        os.environ.setdefault(name, value)
    return f"embedded Prefect server, database in {os.environ['PREFECT_HOME']}"


def never_proxy_loopback() -> None:
    """Exempt this machine from the proxies of the environment, if there are any: a proxy cannot reach its servers.

    Exceptions that httpx cannot parse, such as IPv6 networks, are left out with a warning: with one of them no client
    starts.
    """
    if not getproxies():
        return
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    names = list(dict.fromkeys(filter(None, map(str.strip, given.split(",")))))
    if "*" in names:
        return
    if unread := [name for name in names if not _is_exception(name)]:
        logger.warning("NO_PROXY: %s is left out (expected hosts, addresses or IPv4 networks)", ", ".join(unread))
    kept = [name for name in dict.fromkeys([*names, *_LOOPBACK]) if name not in unread]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(kept)


def _is_exception(name: str) -> bool:
    """Return whether httpx can parse an entry of NO_PROXY, in the URL that it makes of it."""
    import httpx  # only with a proxy

    try:
        IPv6Address(name.partition("/")[0])
        host = f"[{name}]"
    except ValueError:
        host = f"*{name}"
    try:
        httpx.URL(name if "://" in name else f"all://{host}")
    except httpx.InvalidURL:
        return False
    return True


def _check_proxies() -> None:
    """Check that HTTP clients start: httpx also prepares proxies for the exceptions of which it never uses them."""
    import httpx  # Prefect imports it too, later

    for name, proxy in getproxies().items():
        if proxy.startswith("socks") and find_spec("socksio") is None:
            raise ImportError(
                f"{name.upper()}_PROXY is the SOCKS proxy {shown(proxy)}, which needs a package. Install it by "
                f"`pip install 'httpx[socks]'`, or unset {name.upper()}_PROXY"
            )
        if name in ("http", "https", "all"):
            try:
                httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}")
            except (ValueError, httpx.InvalidURL) as error:
                raise ValueError(
                    f"{name.upper()}_PROXY is {shown(proxy)}: {shown(str(error))} (expected http://HOST:PORT). Correct "
                    "or unset it"
                ) from error


def _proxy_of(address: str) -> str:
    """Return how requests to a server go through a proxy; empty if they do not."""
    parts = urlsplit(address)
    proxy = getproxies().get(parts.scheme) or getproxies().get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return f" through the proxy {shown(proxy)} (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY; exceptions: NO_PROXY)"


def profile_server() -> str | None:
    """Return the PREFECT_API_URL of the active profile in the user's Prefect folder; None without one."""
    try:
        content = tomllib.loads((Path.home() / ".prefect" / "profiles.toml").read_text(encoding="utf-8"))
        profile = content["profiles"][os.environ.get("PREFECT_PROFILE") or content["active"]]
        return str(profile["PREFECT_API_URL"])
    except (OSError, RuntimeError, ValueError, LookupError, TypeError):  # no home, no file, not a file of Prefect
        return None


def named_server() -> str | None:
    """Return the URL in PREFECT_API_URL; credentials in it are moved to PREFECT_API_AUTH_STRING.

    Prefect shows the URL on the console and in its UI. Call this function before Prefect is imported.
    """
    address = os.environ.get("PREFECT_API_URL")
    parts = urlsplit(address or "")
    if not address or parts.username is None:
        return address or None
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    os.environ.setdefault("PREFECT_API_AUTH_STRING", credentials)
    os.environ["PREFECT_API_URL"] = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return os.environ["PREFECT_API_URL"]


def reserve_server() -> EmbeddedServer | None:
    """Return an embedded server to start, unless PREFECT_API_URL is set; call this before Prefect is imported.

    Raises:
        StoreWriteError: The folder of its database is read-only, not permitted or full.
        ImportError: A proxy of the environment needs a package that is not installed.
    """
    _check_proxies()
    return None if os.environ.get("PREFECT_API_URL") else EmbeddedServer()


def check_server(address: str) -> str:
    """Check that a named server answers and accepts the credentials; return its version.

    There is one attempt; Prefect's client would retry for minutes.

    Raises:
        OSError: The server does not answer, or refuses the credentials.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_REQUEST_TIMEOUT,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )

    once = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: _SECONDS_TO_ANSWER}
    with temporary_settings(once), get_client(sync_client=True) as client:
        fault = client.api_healthcheck()
        try:
            version = client.api_version() if fault is None else ""  # the health check needs no credentials
        except Exception as error:  # the client raises several types
            fault = error
    if fault is None:
        return version
    if isinstance(fault, PrefectHTTPStatusError) and fault.response.status_code in (401, 403):
        given = bool(PREFECT_API_AUTH_STRING.value())
        raise OSError(
            f"Prefect server {address} {'refuses the given' if given else 'requires'} credentials (status "
            f"{fault.response.status_code}). {'Correct' if given else 'Set'} PREFECT_API_AUTH_STRING=user:password"
        ) from fault
    line = (str(fault) or type(fault).__name__).splitlines()[0]
    raise OSError(
        f"Prefect server {address} does not answer{_proxy_of(address)} ({line}). Start it, or correct or unset "
        "PREFECT_API_URL"
    ) from fault


def check_database_folder() -> None:
    """Check that the embedded server can write its database in PREFECT_HOME; the server would fail without a word.

    Raises:
        StoreWriteError: The folder is read-only, not permitted or full.
    """
    if "PREFECT_HOME" not in os.environ or any(map(os.environ.get, _DATABASES)):
        return
    home = Path(os.environ["PREFECT_HOME"]).expanduser()
    with writing(f"{home} (PREFECT_HOME)"), tempfile.TemporaryFile(dir=home) as file:
        file.write(bytes(_DATABASE_BYTES))
        file.flush()


def is_alone(*, inherited: bool = False) -> bool:
    """Lock this folder's database until this process ends; return whether no other process has a lock.

    For a database or PREFECT_HOME that the user set, take no lock and return False: other programs may use it.

    If it is inherited, a program that replaces this process (`exec`) keeps the lock.
    """
    folder = Path(os.environ.get("PREFECT_HOME", ""))
    if folder != HOME.absolute() / "prefect" or any(map(os.environ.get, _DATABASES)):
        return False
    return share_lock(folder, inherited=inherited)


class EmbeddedServer:
    """Process of an embedded Prefect server for the client of this process; it ends with this process.

    If it is killed, perhaps for want of memory, another one takes its place. The socket stays open in this process, so
    requests wait for the new one; without it, each request would be repeated for a minute, and the run would fail.

    Attributes:
        alone: Time at which no other command used the folder's database; None if another command did.
    """

    def __init__(self) -> None:
        """Reserve the port, and name the server to Prefect, which reads its settings when it is imported."""
        check_database_folder()
        self._listening = listen(0)
        self._port = self._listening.getsockname()[1]
        self._stopped = threading.Event()
        self.alone: datetime | None = None
        self._api = f"http://127.0.0.1:{self._port}/api"
        os.environ["PREFECT_API_URL"] = self._api
        os.environ.setdefault("PREFECT_UI_URL", "")  # else Prefect prints the URL of a UI that does not run

    def start(self) -> None:
        """Start the process."""
        self.alone = datetime.now(UTC) if is_alone() else None
        self._process = self._launched()
        atexit.register(self.stop)

    def wait(self) -> None:
        """Wait until the server answers.

        Raises:
            OSError: The server process ended, or did not answer in time.
        """
        limit = time.monotonic() + float(os.environ.get(_START_TIMEOUT, _SECONDS_TO_START))
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise OSError(
                    f"the embedded Prefect server did not start at {self._api} (exit code {self._process.returncode}). "
                    "See its message above, or run `bsl ui` and set PREFECT_API_URL=http://127.0.0.1:4200/api"
                )
            time.sleep(0.05)
        threading.Thread(target=self._replace_killed, name="embedded-server", daemon=True).start()

    def stop(self) -> None:
        """End the server process."""
        self._stopped.set()
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _launched(self) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
        return subprocess.Popen(
            program(self._listening),
            env={**environment, **_TEMPORARY},
            stdin=subprocess.PIPE,  # closes when this process ends, also by kill -9
            pass_fds=[self._listening.fileno()],
            start_new_session=True,  # Ctrl-C must reach only the command, which then reports its run's state
        )

    def _replace_killed(self) -> None:
        with self._listening:  # closed at the end: else requests would wait for an answer without end
            for _ in range(_REPLACEMENTS):
                code = self._process.wait()
                if self._stopped.is_set():
                    return
                logger.warning("the embedded Prefect server ended (exit code %d) and is started again", code)
                self._process = self._launched()
            self._process.wait()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)  # ignores proxies
        try:
            connection.request("GET", "/api/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def listen(port: int) -> socket.socket:
    """Return a listening socket of this machine; port 0 takes a free port.

    Raises:
        OSError: The port is in use, or not permitted.
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port is free after its server's end
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(2048)  # uvicorn's default
    except OSError:
        listening.close()
        raise
    return listening


def program(listening: socket.socket, *options: str) -> list[str]:
    """Return the command of a server process on a listening socket, which it must inherit."""
    # -P: modules in the program's folder must not shadow installed ones
    return [sys.executable, "-P", str(_PROGRAM), str(listening.fileno()), *options]


def share_lock(folder: Path, *, inherited: bool = False) -> bool:
    """Take the shared lock of a database folder until this process ends; return whether no other process has it.

    On a file system without locks the result is False.
    """
    file = os.open(folder / "commands.lock", os.O_RDWR | os.O_CREAT, 0o644)  # never closed, to keep the lock
    os.set_inheritable(file, inherited)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH)
    return alone
