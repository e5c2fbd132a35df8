"""Handle SIGTERM during long work: finish and save the current unit of work, then stop.

A worker being stopped (a scaled-down pool, a spot machine) gets some seconds. They suffice to publish the current shard
or write a snapshot, which would otherwise be lost.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

_requested = threading.Event()  # for work in other threads than the main one

SECONDS_TO_END: Final = 60.0  # to save a training's state, or to send the last log lines


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Defer SIGTERM inside the block; the yielded function returns whether one was received.

    At the end, the earlier handler is restored and receives the signal, even if the work was finished: Prefect's
    handler ends the run as crashed, the default handler ends the process. An error that leaves the block is logged,
    because the signal replaces it. Python delivers signals only to the main thread; in other threads the function
    returns whether `request_stop` was called.
    """
    if threading.current_thread() is not threading.main_thread():
        yield _requested.is_set
        return
    received, announced = False, threading.Event()

    def note(_signal: int, _frame: object) -> None:
        nonlocal received
        if not received:  # a second signal may interrupt this call
            received = True
            announced.set()

    def announce() -> None:
        announced.wait()
        if received:
            logger.warning("SIGTERM: finishing the current unit of work first")

    # Not in the handler: it interrupts code that may have a lock of the log, and would wait for that lock without end.
    announcer = threading.Thread(target=copy_context().run, args=(announce,), name="sigterm", daemon=True)
    announcer.start()
    previous = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: received
    except Exception as error:
        if received:
            logger.warning(str(error))
        raise
    finally:
        signal.signal(signal.SIGTERM, previous if previous is not None else signal.SIG_DFL)
        announced.set()
        announcer.join()
        if received:
            signal.raise_signal(signal.SIGTERM)


def request_stop() -> None:
    """Ask the work in all threads but the main one to stop as by SIGTERM; for a process that is about to end."""
    _requested.set()


def end_with_parent(pipe: int) -> None:
    """End this process, as by SIGTERM, when its parent ends (kill -9 included) and the system closes their pipe.

    Args:
        pipe: descriptor of this end. The parent must hold the other end open and send nothing more.
    """
    threading.Thread(target=_end_when_closed, args=(pipe,), daemon=True).start()


def _end_when_closed(pipe: int) -> None:
    with suppress(OSError):  # raised if the process at the other end was killed
        while os.read(pipe, 1):  # not `sys.stdin`: Python aborts at exit while a thread reads its buffer
            pass
    end_like_sigterm()


def end_like_sigterm() -> None:
    """End this process by SIGTERM, or at once where that takes longer than `SECONDS_TO_END`."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os._exit(1)
