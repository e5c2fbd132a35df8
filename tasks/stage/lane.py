"""Child process of one function call (see `lanes.py`): it reports stages and log lines to its parent over a pipe.

It ends with its parent, even after kill -9, because the system then closes the parent's end of the pipe. It stops as by
SIGTERM, so a training saves its state.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import sys
import threading
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import cloudpickle

from tasks.stage.lanes import ENDED, EVENT, LOGGED
from tasks.stage.sigterm import end_with_parent

if TYPE_CHECKING:
    from tasks.stage.progress import Event


class _Line:
    """The pipe to the parent process."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._turn = threading.Lock()  # several threads may log

    def send(self, kind: str, content: object) -> None:
        """Send a message; ignore a closed pipe, because this process is then about to be stopped."""
        with self._turn, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((kind, content))


class _Lines(QueueHandler):
    """Sends log records to the parent, which decides what to show."""

    def __init__(self, line: _Line) -> None:
        logging.Handler.__init__(self)
        self._line = line

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record with its formatted message."""
        self._line.send(LOGGED, record)


def _sendable(error: Exception) -> Exception:
    """Return the error, or a `RuntimeError` with its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickling can raise any error
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main(file: int) -> None:
    """Receive a function call over a pipe, run it and send the result.

    Args:
        file: file descriptor of this end of the pipe.
    """
    line = _Line(Connection(file))
    logging.getLogger().addHandler(_Lines(line))  # before Prefect checks for a handler
    context, function, site, arguments = cloudpickle.loads(line.connection.recv_bytes())
    end_with_parent(file)

    from prefect.context import hydrated_context

    from tasks.stage.log_context import show_logs
    from tasks.stage.progress import listening

    result = error = None

    def forward(event: Event, value: object) -> None:
        line.send(EVENT, (event, value))

    with hydrated_context(context), listening(forward):
        show_logs()
        try:
            result = function(site, *arguments)
        except Exception as raised:
            error = _sendable(raised)
    line.send(ENDED, (result, error))


if __name__ == "__main__":
    main(int(sys.argv[1]))
