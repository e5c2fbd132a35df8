"""Interrupt the main thread as Ctrl-C does."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.device.budget import is_logging

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread after some seconds, but never inside `logging`."""
    former = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    if is_logging(frame):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return
    raise KeyboardInterrupt
