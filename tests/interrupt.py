"""Interrupt the main thread as Ctrl-C does."""

import signal
import threading
import time
from contextlib import contextmanager

from benchmarks.device.budget import is_logging

TIMES = 0.01, 20.0  # seconds until the first interrupt, and between repetitions: Python ignores one in a finalizer


@contextmanager
def interrupted_when(is_so):
    """Send SIGINT to the main thread as soon as something is so, but never inside `logging`."""

    over = threading.Event()

    def wait():
        while not is_so() and not over.is_set():
            time.sleep(0.01)
        if not over.is_set():
            signal.setitimer(signal.ITIMER_REAL, *TIMES)

    former = signal.signal(signal.SIGALRM, _interrupt)
    of_ctrl_c = signal.signal(signal.SIGINT, signal.default_int_handler)  # which asyncio replaces while it runs
    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield
    finally:
        over.set()
        waiting.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        signal.signal(signal.SIGINT, of_ctrl_c)


def _interrupt(_number, frame):
    if is_logging(frame):
        signal.setitimer(signal.ITIMER_REAL, *TIMES)
        return
    # Not an exception from here: asyncio cancels the main task, whereas one inside any of its tasks can be lost.
    signal.raise_signal(signal.SIGINT)
