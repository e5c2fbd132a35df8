"""Interrupt the main thread as Ctrl-C does."""

import signal
from contextlib import contextmanager

from benchmarks.device.budget import is_logging


@contextmanager
def interrupted_after(seconds):
    """Raise KeyboardInterrupt in the main thread after some seconds, but never inside `logging`."""
    former = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _interrupt(_number, frame):
    if is_logging(frame):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return
    raise KeyboardInterrupt
