"""Stopping at a good moment instead of at once, when the machine is taken away."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """For the block, let SIGTERM raise a flag instead of ending the process; yields the flag.

    Only a main thread may handle signals; elsewhere the flag stays down and SIGTERM does what it did.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, _: FrameType | None) -> None:
        logger.warning("%s: stopping at the next good moment", signal.Signals(number).name)
        asked.set()

    before = signal.signal(signal.SIGTERM, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGTERM, before)
