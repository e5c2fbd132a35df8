"""Run function calls in child processes on this machine, as part of this flow run.

A child process has its own random generators, threads and memory. So calls do not affect each other's seeds, and a
crash ends only one call. The child reports stages and log lines over a pipe; the terminal shows them like those of this
process. It uses this process's Prefect server.

Child processes end with this one, even after kill -9. They stop as by SIGTERM, so a training saves its state.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import threading
import time
from logging.handlers import QueueHandler
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import cloudpickle

from models.errors import ModelError
from tasks.stage.progress import is_planning, listening, notify
from tasks.stage.sigterm import SECONDS_TO_END, end_like_sigterm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from tasks.stage.progress import Event, StageRun
    from tasks.stage.run_context import RunContext

T = TypeVar("T")
Kind = Literal["event", "logged", "ended"]  # of a message from a child process

_POLL_S: Final = 0.2


class DiedError(ModelError):
    """A child process ended before its call returned."""


class StoppedError(ModelError):
    """A child process was asked to stop."""


def run_apart(
    function: Callable[..., T], site: RunContext, arguments: tuple[Any, ...], stop: threading.Event
) -> T | None:
    """Return `function(site, *arguments)`, computed in a child process; a dry run returns None.

    Args:
        function: a function defined in a module.
        site: run context of the call; its threads are those of the child.
        arguments: the other arguments.
        stop: event that another thread sets to stop the child after its current unit of work.

    Raises:
        DiedError: the process ended early.
        StoppedError: it was stopped.
        Exception: any error of the function.
    """
    if is_planning():
        return None
    call = cloudpickle.dumps((_context(), function, site, arguments))
    with _process(call, site.threads) as (process, connection):
        ended, result, error = _listen(process, connection, stop)
        process.join(SECONDS_TO_END)  # the child sends its last log lines
    if error is not None:
        raise error
    if not ended and stop.is_set():
        raise StoppedError("stopped; run again to resume")
    if not ended:
        raise DiedError(f"its process {_end_of(process.exitcode or 0)}; run again to resume")
    return cast("T", result)


@contextlib.contextmanager
def _process(call: bytes, threads: int | None) -> Iterator[tuple[SpawnProcess, Connection]]:
    spawning = get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_work, args=(there, call, threads), name="lane")
    with there:
        process.start()
    try:
        yield process, here
    finally:
        here.close()
        process.terminate()  # no effect on a process that has ended
        process.join(SECONDS_TO_END)
        process.kill()
        process.join()


def _context() -> dict[str, Any]:
    """Return the context by which a child's Prefect tasks join this flow run, on the same server."""
    from prefect.client.orchestration import get_client
    from prefect.context import serialize_context
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with get_client(sync_client=True) as client:
        address = str(client.api_url)
    with temporary_settings({PREFECT_API_URL: address}):
        context: dict[str, Any] = serialize_context()
    return context


def _listen(process: SpawnProcess, connection: Connection, stop: threading.Event) -> tuple[bool, Any, Any]:
    """Relay a child's messages until it ends; return whether its call returned, its result, and its error."""
    begun: list[StageRun] = []
    deadline = None
    try:
        while True:
            if stop.is_set() and deadline is None:
                process.terminate()
                deadline = time.monotonic() + SECONDS_TO_END
            if deadline is not None and time.monotonic() > deadline:
                process.kill()
            if not connection.poll(_POLL_S):
                continue
            kind, content = connection.recv()
            if kind == "ended":
                return True, *content
            if kind == "logged":
                _show(content)
            else:
                event, value = content
                _relay(event, value, begun)
    except (EOFError, OSError):
        return False, None, None
    finally:
        for step in reversed(begun):  # stages that have not ended
            notify("fails", step)


def _relay(event: Event, value: Any, begun: list[StageRun]) -> None:  # noqa: ANN401  by its event
    """Pass a child's event to this process's listeners."""
    if event == "begins":
        begun.append(value)
    elif event in ("ends", "fails"):
        begun.remove(value)
    notify(event, value)


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


class _Reports:
    """A child's end of the pipe, which is also the queue of a `QueueHandler` for log records."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # several threads may log

    def send(self, kind: Kind, content: object) -> None:
        """Send a message; ignore a closed pipe, because this process is then about to be stopped."""
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send((kind, content))

    def put_nowait(self, record: logging.LogRecord) -> None:
        """Send a log record; the parent decides what to show."""
        self.send("logged", record)


def _work(connection: Connection, call: bytes, threads: int | None) -> None:
    """Run a pickled call (Prefect context, function, run context, arguments) in the child process; send its result."""
    os.setsid()  # Ctrl-C reaches only the command, which then stops its children
    os.dup2(2, 1)  # text printed by libraries is not output of the command
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # before the call is unpickled, which may import torch
    threading.Thread(target=_end_with_parent, daemon=True).start()
    reports = _Reports(connection)
    logging.getLogger().addHandler(QueueHandler(reports))  # type: ignore[arg-type]  # before Prefect looks for handlers
    context, function, site, arguments = cloudpickle.loads(call)

    from prefect.context import hydrated_context

    from tasks.stage.log_context import show_logs

    result = error = None
    with hydrated_context(context), listening(lambda event, value: reports.send("event", (event, value))):
        show_logs()
        try:
            result = function(site, *arguments)
        except Exception as raised:
            error = _sendable(raised)
    reports.send("ended", (result, error))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None  # only the parent is without one
    parent.join()
    end_like_sigterm()


def _sendable(error: Exception) -> Exception:
    """Return the error, or a `RuntimeError` with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickling can raise any error
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
