"""Process of our own Prefect server: `server_process.py DESCRIPTOR [--ui URL]`; imports no other module of `bsl`.

Prefect's ephemeral server survives a command killed with -9, starts only after the command's imports, and does not lock
its database. `prefect server start --background` runs one server for each port, and nothing ends it.

- End: this process's standard input is a pipe from the command, which writes nothing to it. The pipe closes when the
  command ends, also by kill -9.
- Start: one server at a time creates or migrates the database, because two servers that create one SQLite file both
  fail. Afterwards servers start in parallel; ten in sequence would exceed the tenth command's timeout.
- Address: the command opens the listening socket and passes its descriptor, so no other program can take the port.
- Visitors: Prefect's API has no password here, and a browser sends requests of any page to this machine. Requests with
  another host name (DNS rebinding) or from a page of another machine or port are refused.

With `--ui` it also serves the UI and runs the background services, until Ctrl-C.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from types import FrameType

    from uvicorn import Server

_SECONDS_TO_END: Final = 3.0
_INTERRUPTED: Final = 130  # as of every command after Ctrl-C
_CAUSE: Final = re.compile(r"[\w.]+(?:Error|Exception|Exit|Interrupt)\b")  # an exception's line in a traceback
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_HTTP: Final = 80  # port of an address without one


def serve(descriptor: int, ui: str | None = None) -> None:
    """Serve on an open listening socket until the command ends, or with the UI at an address until Ctrl-C."""
    os.umask(0o077)  # the database contains paths and settings: only its owner reads it
    if ui:
        signal.signal(signal.SIGINT, _end_quietly)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # `bsl ui` blocked it until now
    else:
        threading.Thread(target=_end_with_the_command, daemon=True).start()
    server = _server(ui)
    server.run(sockets=[socket.socket(fileno=descriptor)])
    if not server.started:
        sys.exit(3)  # as `uvicorn` does


def _end_with_the_command() -> None:
    while os.read(0, 1024):  # not sys.stdin: Python aborts at exit if a thread reads its buffer
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_END)
    os._exit(1)  # uvicorn would wait for open connections


def _end_quietly(_signal: int, _frame: FrameType | None) -> None:
    """End without the tracebacks of imports and of services; uvicorn calls it after it has closed the connections."""
    os._exit(_INTERRUPTED)


def _server(ui: str | None) -> Server:
    import uvicorn
    from prefect.server.api.server import create_app  # takes seconds, so before the lock is taken

    class OneAtATime(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with migration_lock() as note_migrated:
                await super().startup(sockets)
                if self.started:
                    note_migrated()
            if self.started and ui:
                sys.stdout.write(f"runs and artifacts: {ui}   (stop with Ctrl-C)\n")
                sys.stdout.flush()

    def guarded_app() -> LoopbackOnly:
        return LoopbackOnly(create_app())

    return OneAtATime(uvicorn.Config(guarded_app, factory=True, log_level="error"))


class LoopbackOnly:
    """ASGI application that answers only requests to this machine, from its own pages and this machine's programs."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(
        self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """Answer a request; refuse one of another page or host with status 403."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, _printing_failure(send))
        elif is_local(dict(scope["headers"])):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            text = (
                b"This Prefect server, 127.0.0.1 or localhost, answers only its own pages and programs of its machine."
            )
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": text})


def _printing_failure(send: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """Print why the application does not start, in one line: uvicorn would log a long traceback, or nothing."""

    async def send_and_print(message: Mapping[str, Any]) -> None:
        if message["type"] == "lifespan.startup.failed":
            lines = [line for line in message.get("message", "").splitlines() if _CAUSE.match(line)]
            sys.stderr.write(f"Prefect server: {lines[-1] if lines else 'its start failed'}\n")
        await send(message)

    return send_and_print


def is_local(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request names this machine as its host and, if a page sent it, the page is of this server.

    A page of another port of this machine is of another program, perhaps with content of others.
    """
    own = _loopback_port(b"//" + headers.get(b"host", b""))
    return own is not None and (b"origin" not in headers or _loopback_port(headers[b"origin"]) == own)


def _loopback_port(address: bytes) -> int | None:
    """Return the port in an address of this machine; None for other addresses."""
    with suppress(ValueError):  # no address
        parts = urlsplit(address.decode("latin-1"))
        if parts.hostname in _LOOPBACK:
            return parts.port or _HTTP
    return None


@contextmanager
def migration_lock() -> Iterator[Callable[[], None]]:
    """Lock the migration of the database in PREFECT_HOME; the system releases the lock of a killed process.

    The lock file contains the Prefect version that last migrated the database. If it is the installed version, the lock
    is released immediately.

    Yields:
        A function that records that the database is migrated.
    """
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    installed = version("prefect")
    with (home / "server-start.lock").open("a+") as file:

        def note_migrated() -> None:
            file.truncate(0)
            file.write(installed)
            file.flush()

        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if file.read() == installed and (home / "prefect.db").exists():
                fcntl.flock(file, fcntl.LOCK_UN)
        yield note_migrated


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[3] if "--ui" in sys.argv[2:] else None)
