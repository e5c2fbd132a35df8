"""Run sections of the bench: a section that fails, or exceeds its time budget, reports it and keeps its rows."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.device.results import Rate, holds, not_run
from bsl.models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import FrameType

    from bsl.tasks.diagnostics.finding import Finding

AGAIN_S: Final = 5.0  # interval for repeated interruptions, if the work swallowed the first one
FAULTS: Final = (RuntimeError, OSError, ValueError, ImportError, MemoryError, ModelError)
"""Errors of a machine that lacks memory, a kernel or a package."""
_LOGGING: Final = str(Path(logging.__file__).parent)
_LATER_S: Final = 0.01  # delay of an interruption that found the main thread inside `logging`


class OutOfTimeError(BaseException):
    """A section's time is over; not an Exception, so that no library handles it."""


def within(section: str, rows: Iterable[Finding | Rate], budget_s: float, *, must: bool) -> Iterator[Finding | Rate]:
    """Yield a section's rows within its budget; a last row reports that it failed or was cut.

    A signal interrupts the work between two Python operations, so call this in the main thread only.

    Args:
        section: name for messages.
        rows: rows that are measured one by one; only measuring counts as time.
        budget_s: seconds for all rows.
        must: whether a failure counts as a missed check, or as a check that this machine cannot run.
    """
    remaining, results, name = budget_s, iter(rows), f"{section}: complete"
    while True:
        began = time.monotonic()
        try:
            with _interrupted(remaining):
                row = next(results, None)
        except (OutOfTimeError, *FAULTS) as error:
            # A library may turn the interruption into an error of its own.
            if isinstance(error, OutOfTimeError) or time.monotonic() - began >= remaining:
                yield not_run(name, f"cut after {budget_s:.3g} s")
                return
            reason = f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
            yield holds(name, False, reason) if must else not_run(name, reason)
            return
        if row is None:
            return
        remaining -= time.monotonic() - began
        yield row


@contextlib.contextmanager
def _interrupted(after_s: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block after some seconds; restore another timer of the process at the end."""

    def raise_error(_number: int, frame: FrameType | None) -> None:
        if is_logging(frame):
            signal.setitimer(signal.ITIMER_REAL, _LATER_S, AGAIN_S)
            return
        raise OutOfTimeError

    began, handler = time.monotonic(), signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, raise_error)
    other_s, again_s = signal.setitimer(signal.ITIMER_REAL, max(after_s, 1e-3), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if other_s:
            signal.setitimer(signal.ITIMER_REAL, max(other_s - (time.monotonic() - began), 1e-3), again_s)


def is_logging(frame: FrameType | None) -> bool:
    """Return whether a stack is inside `logging`.

    An exception that a signal raises there can leave the lock of the module locked, and every other thread that logs
    would wait forever.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith(_LOGGING):
            return True
        frame = frame.f_back
    return False


def finished(command: Sequence[str], log: Path) -> int:
    """Run a command and return its exit code; at the end or on interruption, kill its process group.

    Args:
        command: program and arguments.
        log: file for the output; a pipe would wait until all processes close it.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        return process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
