"""Interrupt the main thread as Ctrl-C does."""

import signal
import threading
import time
from contextlib import contextmanager

from benchmarks.device.budget import is_logging


@contextmanager
def interrupted_when(is_so):
    """Raise KeyboardInterrupt in the main thread as soon as something is so, but never inside `logging`."""

    over = threading.Event()

    def wait():
        while not is_so() and not over.is_set():
            time.sleep(0.01)
        if not over.is_set():
            signal.setitimer(signal.ITIMER_REAL, 0.01)

    former = signal.signal(signal.SIGALRM, _interrupt)
    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield
    finally:
        over.set()
        waiting.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _interrupt(_number, frame):
    if is_logging(frame):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return
    raise KeyboardInterrupt
