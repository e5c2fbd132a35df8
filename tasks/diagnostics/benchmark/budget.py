"""Time budgets of a bench's sections: what does not fit is cut, and says so."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Final

from tasks.diagnostics.benchmark.results import Check, Rate, not_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

AGAIN_S: Final = 5.0  # after which work that swallowed the interruption is interrupted again


class OutOfTimeError(BaseException):
    """A section's time is over; no Exception, so that no library takes it for a fault of its own."""


def within(section: str, rows: Iterable[Check | Rate], budget_s: float) -> Iterator[Check | Rate]:
    """Yield a section's rows while its budget lasts; a last row says that it was cut.

    Work is interrupted by a signal between two operations of Python, so this is for the main thread alone.

    Args:
        section: for people.
        rows: made one by one; only making them costs time.
        budget_s: seconds for all of them.
    """
    remaining, made = budget_s, iter(rows)
    while True:
        began = time.monotonic()
        try:
            with _interrupted(remaining):
                row = next(made, None)
        except OutOfTimeError:
            yield not_run(f"{section}: to its end", f"cut after its {budget_s:.3g} s")
            return
        if row is None:
            return
        remaining -= time.monotonic() - began
        yield row


@contextlib.contextmanager
def _interrupted(after_s: float) -> Iterator[None]:
    """Raise OutOfTimeError in the work inside once its time is over; another timer of the process is put back."""

    def raise_error(_number: int, _frame: FrameType | None) -> None:
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


def finished(command: Sequence[str], log: Path, limit_s: float | None = None) -> int:
    """Run a command to its end and return its exit code; its processes end with it, or when this is interrupted.

    Args:
        command: and its arguments.
        log: receives its output. A file: a pipe is waited for as long as any of the processes has it open.
        limit_s: seconds after which it is ended.

    Raises:
        subprocess.TimeoutExpired: it took longer than `limit_s`.
    """
    with log.open("wb") as words:
        process = subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True)
    try:
        return process.wait(limit_s)
    finally:
        with contextlib.suppress(ProcessLookupError):  # none of them is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
