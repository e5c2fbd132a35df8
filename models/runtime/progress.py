"""Progress of long work: the amount done, the rate, and the estimated time left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[int, int, str], None]
"""Callback with (done, total, detail)."""


@dataclass(frozen=True)
class Progress:
    """Progress of one count.

    Attributes:
        what: Name of the count, such as `translation en→de, sentences`.
        done: Units done.
        total: Units in total.
        detail: Further information; may be empty.
        rate: Units per second; None before the second report.
        left: Seconds to the end of the stage at that rate; None if the rate or the following counts are unknown.
    """

    what: str
    done: int
    total: int
    detail: str = ""
    rate: float | None = None
    left: float | None = None

    @property
    def pace(self) -> str:
        """The rate as text, such as `120/s`; empty if it is unknown."""
        if self.rate is None:
            return ""
        return f"{self.rate:,.0f}/s" if self.rate >= 10 else f"{self.rate:.2g}/s"

    def status(self, run_left: str = "") -> str:
        """Return rate, time left, time left of the run, and detail, as far as they are known."""
        left = "" if self.left is None else f"{spelled(self.left)} left"
        return " · ".join(filter(None, [self.pace, left, run_left, self.detail]))


class Count:
    """Convert a count's reports into `Progress`.

    The rate is measured from the first report on, because units before it were loaded, or done by a killed run.

    Args:
        what: Name of the count.
        following: Number of counts of the same size that follow in the same stage; None if unknown.
    """

    def __init__(self, what: str, following: int | None = 0) -> None:
        self._what, self._following = what, following
        self._first: tuple[int, float] | None = None
        self._last = 0

    def update(self, done: int, total: int, detail: str, now: float) -> Progress:
        """Return the progress for a report at `now`, in seconds; a smaller `done` than before starts a new count."""
        if self._first is None or done < self._last:
            self._first = done, now
        self._last = done
        first, since = self._first
        rate = (done - first) / (now - since) if done > first and now > since else None
        return Progress(self._what, done, total, detail, rate, self._left(done, total, rate))

    def _left(self, done: int, total: int, rate: float | None) -> float | None:
        # A total that grows with `done`, as for tables of the Hub, gives no estimate once `done` reaches it.
        if rate is None or self._following is None or done >= total:
            return None
        return (total - done + self._following * total) / rate


def spelled(seconds: float) -> str:
    """Return a duration in round numbers: `~40 s`, `~6 min`, `~2.5 h`."""
    if seconds < 90:
        return f"~{max(5, 5 * round(seconds / 5))} s"
    return f"~{seconds / 60:.0f} min" if seconds < 90 * 60 else f"~{seconds / 3600:.1f} h"
