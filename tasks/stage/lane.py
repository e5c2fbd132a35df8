"""The process of one function call (see `lanes.py`): it reports its stages and log lines to the one that started it.

It ends when that one does, however that ends: kill -9 included, the system closes the other end of the pipe. It then
stops as by SIGTERM: a training saves its state.
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

from tasks.stage.lanes import ENDED, LOGGED, TOLD
from tasks.stage.sigterm import end_with_parent

if TYPE_CHECKING:
    from tasks.stage.progress import Event


class _Line:
    """The pipe to the process that started this one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._turn = threading.Lock()  # any thread logs

    def send(self, kind: str, content: object) -> None:
        """Send a message; where nobody is left to hear it, this process is about to be stopped."""
        with self._turn, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send((kind, content))


class _Lines(QueueHandler):
    """Sends log lines; the other process decides which are shown."""

    def __init__(self, line: _Line) -> None:
        logging.Handler.__init__(self)
        self._line = line

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a line, its message made."""
        self._line.send(LOGGED, record)


def _sendable(error: Exception) -> Exception:
    """The error, or one with its words if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever pickling raises
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main(file: int) -> None:
    """Make the call that the process at the other end of a pipe sends.

    Args:
        file: descriptor of this end.
    """
    line = _Line(Connection(file))
    logging.getLogger().addHandler(_Lines(line))  # before Prefect looks whether there is one
    context, function, site, arguments = cloudpickle.loads(line.connection.recv_bytes())
    end_with_parent(file)

    from prefect.context import hydrated_context

    from tasks.stage.log_context import show_logs
    from tasks.stage.progress import listening

    result = error = None

    def told(event: Event, value: object) -> None:
        line.send(TOLD, (event, value))

    with hydrated_context(context), listening(told):
        show_logs()
        try:
            result = function(site, *arguments)
        except Exception as raised:
            error = _sendable(raised)
    line.send(ENDED, (result, error))


if __name__ == "__main__":
    main(int(sys.argv[1]))
