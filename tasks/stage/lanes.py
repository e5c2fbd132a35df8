"""Run function calls in child processes on this machine, as part of this flow run.

A child process has its own random generators, threads and memory. So calls do not affect each other's seeds, and a
crash ends only one call. The child receives the call over a pipe, and reports stages and log lines over it; the
terminal shows them like those of this process. It uses this process's Prefect server.

Child processes end with this one, even after kill -9 (see `lane.py`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import cloudpickle
from prefect.client.orchestration import get_client
from prefect.context import serialize_context
from prefect.settings import PREFECT_API_URL, temporary_settings

from models.errors import ModelError
from tasks.stage.progress import is_planning, notify
from tasks.stage.sigterm import SECONDS_TO_END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from threading import Event

    from tasks.stage.progress import StageRun
    from tasks.stage.run_context import RunContext

T = TypeVar("T")

_POLL_S: Final = 0.2

EVENT, LOGGED, ENDED = "told", "logged", "ended"  # kinds of messages from a child process


class DiedError(ModelError):
    """A child process ended before its call returned."""


class StoppedError(ModelError):
    """A child process was asked to stop."""


def run_apart(function: Callable[..., T], site: RunContext, arguments: tuple[Any, ...], off: Event) -> T | None:
    """Return `function(site, *arguments)`, computed in a child process; a dry run returns None.

    Args:
        function: a function defined in a module.
        site: run context of the call; its threads are those of the child.
        arguments: the other arguments.
        off: event that another thread sets to stop the child after its current piece of work.

    Raises:
        DiedError: the process ended early.
        StoppedError: it was stopped.
        Exception: any error of the function.
    """
    if is_planning():
        return None
    with _process(site) as (process, connection):
        connection.send_bytes(cloudpickle.dumps((_context(), function, site, arguments)))
        ended, result, error = _listen(process, connection, off)
        if ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)  # it still sends its last log lines
    if error is not None:
        raise error
    if not ended and off.is_set():
        raise StoppedError("stopped; run again to resume")
    if not ended:
        raise DiedError(f"its process {_end_of(process.returncode)}; run again to resume")
    return cast("T", result)


@contextlib.contextmanager
def _process(site: RunContext) -> Iterator[tuple[subprocess.Popen[bytes], Connection]]:
    here, there = Pipe()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if site.threads:
        environment["OMP_NUM_THREADS"] = str(site.threads)
    with there:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tasks.stage.lane", str(there.fileno())],
            env=environment,
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2,  # text printed by libraries is not output of the command
            start_new_session=True,  # Ctrl-C reaches only the command, which then stops its children
        )
    try:
        yield process, here
    finally:
        here.close()
        process.terminate()  # no effect on a process that has ended
        _await_end(process)


def _await_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _context() -> dict[str, Any]:
    """Return the context by which a child's Prefect tasks join this flow run, on the same server."""
    with get_client(sync_client=True) as client:
        address = str(client.api_url)
    with temporary_settings({PREFECT_API_URL: address}):
        context: dict[str, Any] = serialize_context()
    return context


def _listen(process: subprocess.Popen[bytes], connection: Connection, off: Event) -> tuple[bool, Any, Any]:
    """Relay a child's messages until it ends; return whether its call returned, its result, and its error."""
    relay, deadline = _Relay(), None
    try:
        while True:
            if off.is_set() and deadline is None:
                process.terminate()
                deadline = time.monotonic() + SECONDS_TO_END
            if deadline is not None and time.monotonic() > deadline:
                process.kill()
            if not connection.poll(_POLL_S):
                continue
            kind, content = connection.recv()
            if kind == ENDED:
                return True, *content
            relay.take(kind, content)
    except (EOFError, OSError):
        process.wait()
        return False, None, None
    finally:
        relay.close()


class _Relay:
    """Passes a child's messages to this process's listeners and log handlers."""

    def __init__(self) -> None:
        self._open: list[StageRun] = []

    def take(self, kind: str, content: Any) -> None:  # noqa: ANN401  by its kind
        """Pass on one message."""
        if kind == LOGGED:
            _show(content)
            return
        event, value = content
        if event == "begins":
            self._open.append(value)
        elif event in ("ends", "fails"):
            self._open.remove(value)
        notify(event, value)

    def close(self) -> None:
        """Report stages that have not ended as failed."""
        while self._open:
            notify("fails", self._open.pop())


def _show(record: logging.LogRecord) -> None:
    """Print a record as one of this process; Prefect's server already has it."""
    for handler in logging.getLogger().handlers:
        if record.levelno >= handler.level:
            handler.handle(record)


def _end_of(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    name = signal.Signals(-status).name
    return f"was ended by {name}" + (" (the machine may be out of memory)" if status == -signal.SIGKILL else "")
