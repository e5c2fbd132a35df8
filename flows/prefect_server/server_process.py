"""Process of the embedded server: a script with the port as its argument; imports no other module of this project.

Prefect's ephemeral server survives a command killed with -9, starts only after the command's imports, and does not lock
its database. `prefect server start --background` runs one server for each port, and nothing ends it.

- End: this process's standard input is a pipe from the command, which writes nothing to it. The pipe closes when the
  command ends, also by kill -9.
- Start: one server at a time creates or migrates the database, because two servers that create one SQLite file both
  fail. Afterwards servers start in parallel; ten in sequence would exceed the tenth command's timeout.
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
    """Serve on a TCP port of this machine until the command ends."""
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    server = _server(port)
    server.run()
    if not server.started:
        sys.exit(3)  # as `uvicorn` does


def _end_with_the_command() -> None:
    while os.read(0, 1024):  # not sys.stdin: Python aborts at exit if a thread reads its buffer
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_END)
    os._exit(1)  # uvicorn would wait for open connections


def _server(port: int) -> Server:
    import uvicorn
    from prefect.server.api.server import create_app  # takes seconds, so before the lock is taken

    class OneAtATime(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            with migration_lock() as note_migrated:
                await super().startup(sockets)
                if self.started:
                    note_migrated()

    return OneAtATime(uvicorn.Config(create_app, factory=True, host="127.0.0.1", port=port, log_level="error"))


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
    serve(int(sys.argv[1]))
