"""The server process of a command: run as a file with the port as its argument; imports nothing of the pipeline.

Prefect's ephemeral server outlives a command that is killed with -9, starts only after the command's imports, and does
not lock its database. `prefect server start --background` is one server for each port, and nothing ends it.

- End: the command holds the other end of this process's standard input and writes nothing. The pipe closes when the
  command ends, by kill -9 too.
- Start: one server at a time creates or migrates the database. Two that create one SQLite file at once both fail. Later
  servers start side by side: ten in a row would outlast the patience of the tenth command.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from uvicorn import Server

_SECONDS_TO_END: Final = 3.0


def serve(port: int) -> None:
    """Serve on a port of this machine until the command ends.

    Args:
        port: the TCP port.
    """
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    server = _server(port)
    server.run()
    if not server.started:
        sys.exit(3)  # as `uvicorn` does


def _end_with_the_command() -> None:
    while os.read(0, 1024):  # not sys.stdin: Python aborts at its end while a thread reads that buffer
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_END)
    os._exit(1)  # uvicorn waits for open connections


def _server(port: int) -> Server:
    import uvicorn
    from prefect.server.api.server import create_app  # takes seconds, without the lock

    class OneAtATime(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with migration_lock() as note_migrated:
                await super().startup(sockets)
                if self.started:
                    note_migrated()

    return OneAtATime(uvicorn.Config(create_app, factory=True, host="127.0.0.1", port=port, log_level="error"))


@contextmanager
def migration_lock() -> Iterator[Callable[[], None]]:
    """Wait until no other server of this PREFECT_HOME migrates; the system releases the lock of a killed process.

    The lock file has the version of Prefect that migrated the folder's database last. If it is this one, the lock is
    released at once.

    Yields:
        A function that notes that the database is migrated.
    """
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    own = version("prefect")
    with (home / "server-start.lock").open("a+") as file:

        def note_migrated() -> None:
            file.truncate(0)
            file.write(own)
            file.flush()

        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if file.read() == own and (home / "prefect.db").exists():
                fcntl.flock(file, fcntl.LOCK_UN)
        yield note_migrated


if __name__ == "__main__":
    serve(int(sys.argv[1]))
